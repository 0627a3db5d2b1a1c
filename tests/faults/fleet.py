#!/usr/bin/env python3
"""Hosts that are network namespaces of this machine, one of them slow or wrong on purpose: does `evenload fleet` name it?

    fleet.py EVENLOAD [KIND ...]      once each: even ranks one_way pair host core memory loss wrong killed hung absent
    fleet.py EVENLOAD --all [N]       N times (6) each that has a figure, on another host each time, and ten even fleets

Each host has a cable of 400 Mbit/s to a switch. Needs root. Prints a line a trial; exit status 1 if any was named wrong, 77 if
this machine cannot make such hosts."""
import json, os, shutil, signal, subprocess, sys, tempfile, time

HOSTS, RATE, SLOW = 8, 400, 200  # Mbit/s


def run(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, text=True, **more)


class Fleet:
    """Namespaces, the switch between them, and what is planted. All of it goes with its processes."""

    def __init__(self, folder):
        self.folder, self.holders, self.others, self.groups = folder, [], [], []
        self.switch = self.hold("switch")
        self.at(self.switch, "ip link add bridge type bridge && ip link set bridge up && ip address add 10.78.0.254/24 dev bridge")
        self.at(self.switch, "ip link set lo up")
        self.hosts = [self.hold(f"node{i}") for i in range(HOSTS)]
        for i, host in enumerate(self.hosts):
            self.at(self.switch, f"ip link add port{i} type veth peer name eth0 netns {host} && ip link set port{i} master bridge up")
            self.at(host, f"ip address add 10.78.0.{i + 1}/24 dev eth0; ip link set lo up; ip link set eth0 up")
        self.even()

    def hold(self, name):
        up = os.path.join(self.folder, name + ".up")
        holder = subprocess.Popen(["unshare", "--net", "--uts", "sh", "-c", 'hostname "$1" && touch "$2" && exec sleep 3600', "sh", name, up])
        self.holders.append(holder)
        while not os.path.exists(up):
            if holder.poll() is not None:
                sys.exit(77)
            time.sleep(0.01)
        return holder.pid

    def at(self, pid, line):
        return run("nsenter", "-t", str(pid), "-n", "-u", "sh", "-c", line)

    def cable(self, host, out=RATE, into=RATE, loss=0, slow_to=None):
        """out: what it sends; slow_to: another host to which it sends at half the rate; loss: of what it sends, in %."""
        shape = "tc qdisc replace dev {0} root handle 1: htb default 1 && tc class replace dev {0} parent 1: classid 1:1 htb rate {1}mbit burst 64k"
        self.at(self.hosts[host], "tc qdisc del dev eth0 root 2>/dev/null; " + shape.format("eth0", out))
        self.at(self.switch, f"tc qdisc del dev port{host} root 2>/dev/null; " + shape.format(f"port{host}", into))
        for other in self.hosts if loss else []:
            self.at(other, "nft add table ip loss && nft add chain ip loss in '{ type filter hook input priority 0; }' && "
                    f"nft add rule ip loss in ip saddr 10.78.0.{host + 1} numgen random mod {round(100 / loss)} 0 drop")
        if slow_to is not None:
            self.at(self.hosts[host], f"tc class add dev eth0 parent 1: classid 1:2 htb rate {SLOW}mbit burst 64k && tc filter add dev eth0 "
                    f"parent 1: protocol ip prio 1 u32 match ip dst 10.78.0.{slow_to + 1}/32 flowid 1:2")

    def even(self):
        for host in range(HOSTS):
            self.cable(host)
            if shutil.which("nft"):
                self.at(self.hosts[host], "nft flush ruleset")
        for other in self.others:
            other.kill()
            other.wait()
        self.others = []

    def group(self, quota):
        """A control group with so much of a core; its file of processes."""
        name = f"evenload-fleet-{os.getpid()}"
        if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
            path = f"/sys/fs/cgroup/{name}"
            os.makedirs(path, exist_ok=True)
            open(path + "/cpu.max", "w").write(f"{int(quota * 20000)} 20000")
        else:
            path = f"/sys/fs/cgroup/cpu/{name}"
            os.makedirs(path, exist_ok=True)
            open(path + "/cpu.cfs_period_us", "w").write("20000")
            open(path + "/cpu.cfs_quota_us", "w").write(str(int(quota * 20000)))
        self.groups.append(path)
        return path + "/cgroup.procs"

    def neighbour(self, host):
        """Copies memory on all cores while this host measures its device, and only then: the others share its memory."""
        program = r"""
import os, sys, time
mine = os.readlink("/proc/self/ns/net")
def busy():
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/ns/net") == mine:
                words = open(f"/proc/{name}/cmdline").read().split("\0")
                if "fleet" in words and "devices" in words: return True
        except OSError: pass
    return False
a, b = bytearray(128 << 20), bytearray(128 << 20)
while True:
    if busy():
        for _ in range(4): b[:] = a
    else: time.sleep(0.01)
"""
        for _ in range(2):
            self.others.append(subprocess.Popen(["nsenter", "-t", str(self.hosts[host]), "-n", sys.executable, "-c", program]))

    def close(self):
        for process in self.others + self.holders:
            process.kill()
            process.wait()
        for path in self.groups:
            try:
                os.rmdir(path)
            except OSError:
                pass


class Trial:
    def __init__(self, fleet, evenload, seconds=0):
        self.fleet, self.evenload, self.out = fleet, evenload, tempfile.mkdtemp(dir=fleet.folder)
        self.options, self.prefix, self.absent = [], {}, None

    def files(self):
        hosts = os.path.join(self.out, "hosts.txt")
        with open(hosts, "w") as file:
            for i in range(HOSTS):
                file.write(f"10.78.0.{i + 1} name=node{i} devices=cpu:{i % 2},\n")
        rsh = os.path.join(self.out, "rsh")
        with open(rsh, "w") as file:
            file.write("#!/bin/sh\ncase $1 in\n")
            for i, pid in enumerate(self.fleet.hosts):
                before = "echo no such host; exit 255; " if self.absent == i else self.prefix.get(i, "")
                file.write(f"10.78.0.{i + 1}) {before}shift; exec nsenter -t {pid} -n -u sh -c \"$*\";;\n")
            file.write("esac\n")
        os.chmod(rsh, 0o755)
        return hosts, rsh

    def start(self):
        hosts, rsh = self.files()
        words = ["nsenter", "-t", str(self.fleet.switch), "-n", self.evenload, "fleet", "--hosts", hosts, "--out", self.out + "/r", "--json", *self.options]
        return subprocess.Popen(words, env={**os.environ, "EVENLOAD_RSH": rsh}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, process):
        out, err = process.communicate(timeout=300)
        try:
            return process.returncode, json.loads(out), err
        except ValueError:
            return process.returncode, None, err


def faults(document):
    return [(fault["kind"], tuple(fault["hosts"])) for fault in document["faults"]]


def bad(document):
    return {host["name"]: host for host in document["hosts"] if host["verdict"] not in ("good", "undecided")}


def agents(fleet, host):
    """Processes of evenload on a host."""
    found, mine = [], os.readlink(f"/proc/{fleet.hosts[host]}/ns/net")
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/ns/net") == mine and "fleet" in open(f"/proc/{name}/cmdline").read():
                found.append(int(name))
        except OSError:
            pass
    return found


def once(fleet, evenload, kind, i):
    """Plants `kind` on host i. Returns whether it was named right, and what was said."""
    trial, a, b = Trial(fleet, evenload), i % HOSTS, (i + 3) % HOSTS
    name, other = f"node{a}", f"node{b}"
    fleet.even()
    if kind == "one_way":
        fleet.cable(a, slow_to=b)
    elif kind == "pair":
        fleet.cable(a, slow_to=b)
        fleet.cable(b, slow_to=a)
    elif kind == "host":
        fleet.cable(a, out=SLOW, into=SLOW)
    elif kind == "loss":
        fleet.cable(a, loss=1)
    elif kind == "core":
        trial.prefix[a] = f"echo $$ >{fleet.group(0.5)}; "
    elif kind == "memory":
        fleet.neighbour(a)
    elif kind == "wrong":
        trial.options = ["--soak", "2s", "--inject", f"wrong={a}:0.01"]
    elif kind == "absent":
        trial.absent = a
    process = trial.start()
    begin = time.time()
    if kind in ("killed", "hung"):
        while not any("links" in open(f"/proc/{pid}/cmdline").read() for pid in agents(fleet, a) if os.path.exists(f"/proc/{pid}")):
            if process.poll() is not None:
                break
            time.sleep(0.05)
        for pid in agents(fleet, a):
            os.kill(pid, signal.SIGKILL if kind == "killed" else signal.SIGSTOP)
        begin = time.time()
    status, document, err = trial.end(process)
    seconds = time.time() - begin
    for pid in agents(fleet, a):
        os.kill(pid, signal.SIGKILL)
    if document is None:
        return False, f"status {status}: {err.strip()}"
    named, said = bad(document), faults(document)
    worst = {host: row["worst"] for host, row in named.items()}
    right = {
        "even": lambda: not named and not said and status in (0, 3),
        "one_way": lambda: said == [("one_way", (name, other))] and not named,
        "pair": lambda: [(k, set(h)) for k, h in said] == [("pair", {name, other})] and not named,
        "host": lambda: said == [("host", (name,))] and set(named) == {name},
        "loss": lambda: set(named) == {name} and ("loss", (name,)) in said,
        "core": lambda: set(named) == {name} and any(d["figures"]["products"]["bad"] for d in named[name]["devices"]),
        "memory": lambda: set(named) == {name} and not said and any(d["figures"][f]["bad"] for d in named[name]["devices"] for f in ("memory", "copies", "products")), # it takes cores too
        "wrong": lambda: set(named) == {name} and named[name]["devices"][0]["wrong"]["op"] == "linear_forward 2"
        and named[name]["devices"][0]["wrong"]["element"] == 1000,
        "killed": lambda: set(named) == {name} and named[name]["verdict"] == "lost" and len(document["links"]) == (HOSTS - 1) * (HOSTS - 2),
        "hung": lambda: set(named) == {name} and named[name]["verdict"] == "lost" and len(document["links"]) == (HOSTS - 1) * (HOSTS - 2),
        "absent": lambda: set(named) == {name} and named[name]["verdict"] == "absent" and len(document["links"]) == (HOSTS - 1) * (HOSTS - 2),
    }[kind]()
    if kind != "even":
        right = right and status == 1
    if os.environ.get("KEEP"):
        print(trial.out)
    else:
        shutil.rmtree(trial.out, ignore_errors=True)
    return right, f"status {status}, hosts {worst}, faults {said}, {seconds:.0f} s"


def by_ranks(fleet, evenload):
    """Three hosts whose launcher gave torchrun's variables: they have to meet by the first one's address."""
    fleet.even()
    out, ranks = tempfile.mkdtemp(dir=fleet.folder), []
    for rank in (1, 2, 0):
        given = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "3", "LOCAL_RANK": "0", "MASTER_ADDR": "10.78.0.1", "MASTER_PORT": "29600"}
        words = ["nsenter", "-t", str(fleet.hosts[rank]), "-n", "-u", evenload, "fleet", "--json", "--repeats", "3", "--out", out + "/r"]
        ranks.append(subprocess.Popen(words, env=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
    text = ranks[2].communicate(timeout=200)[0]
    for process in ranks:
        process.wait()
    document = json.loads(text)
    failed = [phase["reason"] for phase in document["phases"] if phase["reason"]]
    return len(document["links"]) == 6 and not failed, f"{len(document['links'])} links, {failed}"


def main():
    evenload, words = os.path.abspath(sys.argv[1]), sys.argv[2:]
    kinds = ["one_way", "pair", "host", "core", "memory", "loss", "wrong"]
    if words[:1] == ["--all"]:
        plan = [(kind, i) for i in range(int(words[1]) if words[1:] else 6) for kind in kinds] + [("even", i) for i in range(10)]
    else:
        plan = [(kind, 2) for kind in words or ["even", "ranks", *kinds, "killed", "hung", "absent"]]
    folder, right = tempfile.mkdtemp(), {}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        fleet = Fleet(folder)
    except subprocess.CalledProcessError as error:
        print(error.stderr.strip())
        sys.exit(77)
    try:
        for kind, i in plan:
            good, what = by_ranks(fleet, evenload) if kind == "ranks" else once(fleet, evenload, kind, i)
            right.setdefault(kind, []).append(good)
            print(f"{'right' if good else 'WRONG'}: {kind} on node{i % HOSTS}: {what}", flush=True)
    finally:
        fleet.close()
        if not os.environ.get("KEEP"):
            shutil.rmtree(folder, ignore_errors=True)
    print(", ".join(f"{kind} {sum(list)}/{len(list)}" for kind, list in right.items()))
    sys.exit(0 if all(all(list) for list in right.values()) else 1)


main()
