"""The Rice code bit by bit, in plain Python, as the SBC paper writes it (Algorithms 3 and 4)."""


def interleaved(positions: list[int], parameter: int) -> str:
    """Return the code of sorted positions: each gap's ones, its zero, its low bits."""
    bits, previous = "", -1
    for position in positions:
        symbol = position - previous - 1
        low = format(symbol % (1 << parameter), f"0{parameter}b") if parameter else ""
        bits += "1" * (symbol >> parameter) + "0" + low
        previous = position
    return bits


def two_runs(bits: str, parameter: int) -> tuple[str, list[int]]:
    """Take an interleaved code apart: the unary parts in a row, and each gap's low bits."""
    unary, lows, place = "", [], 0
    while place < len(bits):
        stop = bits.index("0", place)
        unary += bits[place : stop + 1]
        lows.append(int(bits[stop + 1 : stop + 1 + parameter] or "0", 2))
        place = stop + 1 + parameter
    return unary, lows


def fixed_run(values: list[int], width: int) -> str:
    """Return numbers of `width` bits as `pack_fixed` lays them, with its padding."""
    head = width % 8
    bits = "".join(format(value >> (width - head), f"0{head}b") for value in values if head)
    bits += "0" * (-len(bits) % 8)
    for shift in range(width - head - 8, -1, -8):
        bits += "".join(format(value >> shift & 255, "08b") for value in values)
    return bits


def to_bytes(bits: str) -> bytes:
    """Return bits as bytes, padded with zeros."""
    padded = bits + "0" * (-len(bits) % 8)
    return bytes(int(padded[i : i + 8], 2) for i in range(0, len(padded), 8))
