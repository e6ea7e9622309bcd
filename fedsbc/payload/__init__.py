"""The payload `fedsbc.v1`: the bytes of one update."""

from fedsbc.payload.accounting import PayloadBits, measure
from fedsbc.payload.decoder import decode
from fedsbc.payload.encoder import encode
from fedsbc.payload.frame import max_payload_bytes

__all__ = ["PayloadBits", "decode", "encode", "max_payload_bytes", "measure"]
