"""What a deployment really transfers: bytes on the interfaces against the ledger, and seconds.

    python -m tests.benchmarks.deployment_network [--profile 4g] [--scheme sbc] [--rounds 3] OUT

Three SuperNodes run in network namespaces of their own, each on a link of its own to the SuperLink;
`tc` limits the links where a profile is given: netem to the profile's rates and latency, or, in a
kernel without netem, tbf to its rates alone. Needs root, `ip` and `tc`. Writes one JSON object.
"""

import argparse
import json
import subprocess
import tempfile
import threading
import time
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path

from fedsbc import config as configs
from fedsbc.network.profiles import PROFILES
from fedsbc.run_folder import RunFolder
from sims.deploy.app_folder import write_app
from sims.deploy.data import write_device_files
from sims.deploy.deployment import Deployment
from sims.deploy.local import node_config

ROOT = Path(__file__).parents[2]
NUM_NODES = 3
SAMPLE_S = 0.01
QUIET_S = 1.0
"""A transfer ends where nothing more than `QUIET_BYTES` follows for so long."""
QUIET_BYTES = 3000
SCHEMES = {"dense": "upstream.name=none", "sbc": "upstream.name=sbc"}


def why_not():
    """Return why there can be no namespaces with limited links here; None if there can."""
    try:
        with closing(Link(99, PROFILES["4g"])):
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        return f"network namespaces with tc limits cannot be made here: {said.strip()}"


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Link:
    """A namespace and the pair of interfaces that leads to it."""

    def __init__(self, number, profile):
        self.name, self.near, self.far = f"fsb{number}", f"fsbs{number}", f"fsbn{number}"
        self.server, node = f"10.213.{number}.1", f"10.213.{number}.2"
        self.samples, self.has_delay = [], False
        ip("netns", "add", self.name)
        ip("link", "add", self.near, "type", "veth", "peer", "name", self.far, "netns", self.name)
        ip("addr", "add", f"{self.server}/24", "dev", self.near)
        ip("link", "set", self.near, "up")
        ip("-n", self.name, "addr", "add", f"{node}/24", "dev", self.far)
        ip("-n", self.name, "link", "set", self.far, "up")
        ip("-n", self.name, "link", "set", "lo", "up")
        try:
            if profile:
                self._limit(["tc"], self.near, profile.downlink_bit_s, profile.latency_s)
                within = ["ip", "netns", "exec", self.name, "tc"]
                self._limit(within, self.far, profile.uplink_bit_s, profile.latency_s)
        except BaseException:
            self.close()
            raise

    def _limit(self, command, device, rate_bit_s, latency_s):
        queue = [*command, "qdisc", "add", "dev", device, "root"]
        rate = f"{rate_bit_s:.0f}bit"
        netem = ["netem", "limit", "100000", "delay", f"{latency_s * 1000:g}ms", "rate", rate]
        ended = subprocess.run([*queue, *netem], capture_output=True, check=False)
        self.has_delay = ended.returncode == 0
        if not self.has_delay:
            burst = max(5000, rate_bit_s / 8 / 100)  # bytes of 10 ms
            tbf = ["tbf", "rate", rate, "burst", f"{burst:.0f}", "limit", "200000"]
            subprocess.run([*queue, *tbf], check=True, capture_output=True, text=True)

    def sample(self):
        """Note the time and the bytes that came up and went down."""
        folder = Path("/sys/class/net") / self.near / "statistics"
        up, down = (int((folder / f"{way}_bytes").read_text()) for way in ("rx", "tx"))
        self.samples.append((time.time(), up, down))

    def close(self):
        ip("netns", "del", self.name)


ACKNOWLEDGES = 5
"""A burst with so many times its bytes in the other direction only acknowledges those."""


def transfers(samples, column, at_least):
    """Return (first, last, bytes) of each burst of one direction, without mere acknowledgements."""
    found, start, last, total = [], None, None, 0
    for (t0, *before), (t1, *after) in pairwise(samples):
        moved = after[column] - before[column]
        if moved > QUIET_BYTES / 10:
            start, last, total = (t0 if start is None else start), t1, total + moved
        elif start is not None and t1 - last > QUIET_S:
            found.append((start, last, total))
            start, total = None, 0
    if start is not None:
        found.append((start, last, total))
    return [
        burst
        for burst in found
        if burst[2] >= at_least
        and bytes_between(samples, 1 - column, *burst[:2]) < ACKNOWLEDGES * burst[2]
    ]


MOST = 0.98
"""Of a burst's bytes: the payload. The rest are the small requests before and after it."""


def seconds_of_most(samples, column, first, last, total):
    """Return the length of the shortest time in which most of a burst's bytes went."""
    within = [(each[0], each[1 + column]) for each in samples if first <= each[0] <= last]
    shortest, start = last - first, 0
    for end, (time_s, count) in enumerate(within):
        while start < end and count - within[start + 1][1] >= MOST * total:
            start += 1
        if count - within[start][1] >= MOST * total:
            shortest = min(shortest, time_s - within[start][0])
    return shortest


def bytes_between(samples, column, first, last):
    """Return the bytes of one direction between two of the times that were noted."""
    counts = [each[1 + column] for each in samples if first <= each[0] <= last]
    return counts[-1] - counts[0]


def transfer_seconds(samples, rows, way, profile, delay_s):
    """Return for each training message of a node what was measured, and what the model says.

    A node's messages are the last bursts of their direction, one a round; what is larger and comes
    before them is the app bundle.
    """
    rows = sorted(rows, key=lambda row: row.round)
    rate = profile.uplink_bit_s if way == "up" else profile.downlink_bit_s
    smallest = min(row.payload_bits for row in rows) // 8
    column = ("up", "down").index(way)
    bursts = transfers(samples, column, smallest)[-len(rows) :]
    return [
        {
            "round": row.round,
            "payload_bytes": row.payload_bits // 8,
            "model_s": round(row.payload_bits / rate + delay_s, 3),
            "measured_s": round(seconds_of_most(samples, column, first, last, total), 3),
            "burst_s": round(last - first, 3),
            "burst_bytes": total,
        }
        for row, (first, last, total) in zip(rows, bursts, strict=True)
    ]


def measure(scheme, args, folder):
    """Run one scheme; return what the ledger says and what the links carried."""
    config = configs.load(
        ROOT / "configs" / "demo" / "sbc.yaml",
        [SCHEMES[scheme], f"clients.count={NUM_NODES}", "participation=1", "engine.kind=deploy",
         f"rounds={args.rounds}", *args.set],
    )  # fmt: skip
    out = folder / "run"
    profile = PROFILES[args.profile] if args.profile else None
    with ExitStack() as stack:
        links = []
        for number in range(NUM_NODES):
            links.append(Link(number, profile))
            stack.callback(links[-1].close)
        addresses = [link.server for link in links]
        deployment = stack.enter_context(Deployment(folder / "deployment", addresses=addresses))
        deployment.start_superlink()
        for number, file in enumerate(write_device_files(config, folder / "data")):
            node = deployment.add_node(f"node-{number}", node_config(number, file))
            within = ["ip", "netns", "exec", links[number].name]
            deployment.start_node(node.name, address=links[number].server, within=within)
        write_app(folder / "app", config, out)
        stop = threading.Event()
        sampler = threading.Thread(target=_sample, args=(links, stop))
        sampler.start()
        try:
            time.sleep(args.idle_s)
            idle = [_per_second(link.samples) for link in links]
            status, details = deployment.wait(deployment.submit(folder / "app"), 1500, poll_s=5)
        finally:
            stop.set()
            sampler.join()
    assert status == "finished:completed", details
    return _result(RunFolder.open(out), links, idle, profile)


def _sample(links, stop):
    while not stop.wait(SAMPLE_S):
        for link in links:
            link.sample()


def _per_second(samples):
    seconds = samples[-1][0] - samples[0][0]
    return [(samples[-1][way] - samples[0][way]) / seconds for way in (1, 2)]


def _result(folder, links, idle, profile):
    rows = folder.ledger().rows
    result = {"wall_s": [round(r.wall_s, 2) for r in folder.rounds()]}
    result["has_delay"] = links[0].has_delay
    for way, column in (("up", 1), ("down", 2)):
        kept = [row for row in rows if row.direction == way and row.kind == "train"]
        sizes = sorted({row.payload_bits // 8 for row in kept})
        bursts = [
            (round(last - first, 3), total)
            for link in links
            for first, last, total in transfers(link.samples, column - 1, sizes[0] // 2)
        ]
        seconds = [link.samples[-1][0] - link.samples[0][0] for link in links]
        result[way] = {
            "payload_bytes": sum(row.payload_bits for row in kept) // 8,
            "record_bytes": sum(row.envelope_bits for row in rows if row.direction == way) // 8,
            "interface_bytes": sum(link.samples[-1][column] for link in links),
            "idle_bytes": round(
                sum(rate[column - 1] * s for rate, s in zip(idle, seconds, strict=True))
            ),
            "message_bytes": sizes,
            "bursts": bursts,
        }
        if profile:
            delay_s = profile.latency_s if links[0].has_delay else 0.0
            result[way]["seconds"] = {
                number: transfer_seconds(
                    link.samples, [r for r in kept if r.client_id == number], way, profile, delay_s
                )
                for number, link in enumerate(links)
            }
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--profile", choices=PROFILES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--idle-s", type=float, default=30.0)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--scheme", choices=SCHEMES, help="default: all")
    args = parser.parse_args()
    if (reason := why_not()) is not None:
        raise SystemExit(f"skipped: {reason}")
    results = {"profile": args.profile}
    for scheme in [args.scheme] if args.scheme else SCHEMES:
        with tempfile.TemporaryDirectory(prefix="fedsbc-network-") as folder:
            results[scheme] = measure(scheme, args, Path(folder))
        args.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
