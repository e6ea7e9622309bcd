"""What a hostile client sends: changes of a reply, and a ClientApp mod that sends them one a round.

`make_hostile` copies this file into an app bundle, so it imports nothing of `tests`.
"""

import json
import zlib
from pathlib import Path

import numpy as np

from fedsbc.message import ARRAYS, FIELDS
from fedsbc.payload import decode

CLIENT = 2
"""The one that is hostile under the mod."""


def sealed(data: bytes) -> bytes:
    """Return a payload with the checksum that its other bytes have."""
    crc = zlib.crc32(data[:12] + data[16:])
    return data[:12] + crc.to_bytes(4, "little") + data[16:]


def garbage(fields, data, layout):
    return bytes(range(256))


def cut_off(fields, data, layout):
    return data[:-1]


def giant_count(fields, data, layout):
    return sealed(data[:20] + b"\xff\xff" + data[22:])  # after header and codings of 4 tensors


def not_a_number(fields, data, layout):
    mean = decode(data, layout).blocks[0].mean
    return sealed(data.replace(np.float32(mean).tobytes(), np.float32(np.nan).tobytes(), 1))


def other_layout(fields, data, layout):
    return sealed(data[:4] + bytes(8) + data[12:])


def other_payload_version(fields, data, layout):
    return sealed(data[:2] + b"\x63" + data[3:])


def old_version(fields, data, layout):
    fields["base_version"] -= 1
    return data


def another_round(fields, data, layout):
    fields["round"] += 1
    return data


def other_protocol(fields, data, layout):
    fields["protocol"] = 99
    return data


def other_type(fields, data, layout):
    fields["train_loss"] = "low"
    return data


def more_samples(fields, data, layout):
    fields["num_samples"] = 10**9
    return data


ATTACKS = {
    garbage: "does not start with 'FS'",
    cut_off: "checksum does not match",
    giant_count: "more entries kept than there are",
    not_a_number: "is nan",
    other_layout: "layout",
    other_payload_version: "version 99",
    old_version: "relative to version",
    another_round: "reply has round",
    other_protocol: "message format 99",
    other_type: "train_loss",
    more_samples: "claims 1000000000 samples",
}
"""And what the server says of each."""

IN_TURN = [*ATTACKS, "replay"]
"""One a round, from round 1."""


def mod(message, context, call_next):
    """Let one client change its own updates: a Flower client mod."""
    from clients.worker import worker_of

    reply = call_next(message, context)
    is_ours = context.node_config["partition-id"] == CLIENT and reply.has_content()
    fields = reply.content[FIELDS] if is_ours else {"kind": ""}
    if fields["kind"] == "train-reply":
        kept = Path(str(context.node_config["state-dir"])) / "first-update.json"
        array = reply.content[ARRAYS]["update"]
        attack = IN_TURN[(fields["round"] - 1) % len(IN_TURN)]
        if fields["round"] == 1:
            kept.write_text(json.dumps([dict(fields), array.data.hex()]))
        if attack == "replay":
            earlier, data = json.loads(kept.read_text())
            fields.update(earlier)
            array.data = bytes.fromhex(data)
        else:
            array.data = attack(fields, array.data, worker_of(context).model.layout)
    return reply


def make_hostile(app: Path) -> None:
    """Put the mod into the clients of an app folder."""
    (app / "clients" / "hostile.py").write_text(Path(__file__).read_text())
    path, line = app / "clients" / "app.py", "app = ClientApp()\n"
    text = path.read_text()
    assert line in text
    hostile = "from .hostile import mod\n\napp = ClientApp(mods=[mod])\n"
    path.write_text(text.replace(line, hostile))
