"""The shop under load: a Redis and a PostgreSQL, three instances, customers, and two mishaps.

Everything listens on free ports, lives in one directory and ends with the scene.
"""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def until(what, check):
    """Asks until it is so."""
    for _ in range(200):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            if check():
                return
        time.sleep(0.1)
    raise SystemExit(f"render.py: not within 20 s: {what}")


def listens(port):
    with socket.create_connection(("127.0.0.1", port), timeout=1):
        return True


class Scene:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.processes = []
        self.over = threading.Event()
        self.redis_port = free_port()
        self.redis = self.start("redis-server", "--port", str(self.redis_port), "--save", "")
        database = self.start_postgres()
        self.shops = [self.start_shop(database, packing) for packing in (20, 20, 8_000)]

    def start(self, *command, **options):
        log = open(self.directory / f"{len(self.processes)}.log", "wb")
        process = subprocess.Popen(
            command, cwd=self.directory, stdout=log, stderr=subprocess.STDOUT, **options
        )
        self.processes.append(process)
        return process

    def start_postgres(self):
        """Refuses to run as root, so it may have to be somebody else's."""
        programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
        if not programs:
            raise SystemExit("render.py: install it first: apt-get install postgresql")
        data, port = self.directory / "postgres", free_port()
        data.mkdir()
        options = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
        if options:
            self.directory.chmod(0o755)
            subprocess.run(["chown", "postgres:postgres", data], check=True)
        initdb = [programs[-1] / "initdb", "-D", data, "-U", "shop", "-A", "trust"]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd="/", **options)
        self.start(programs[-1] / "postgres", "-D", data, "-p", str(port), "-k", data, **options)
        ready = [programs[-1] / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
        until("PostgreSQL is ready", lambda: subprocess.run(ready).returncode == 0)
        return f"postgres://shop@127.0.0.1:{port}/postgres"

    def start_shop(self, database, packing):
        port = free_port()
        environment = os.environ | {
            "DATABASE_URL": database,
            "LOCKATTR_URL": f"redis://127.0.0.1:{self.redis_port}/",
            "SHOP_LISTEN": f"127.0.0.1:{port}",
            "SHOP_PACKING": str(packing),
            "SHOP_LOG": "warn",
        }
        target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        self.start(target / "debug" / "shop", env=environment)
        until("the shop listens", lambda: listens(port))
        return port

    def play(self, seconds):
        """Orders for so long: a rush in the second quarter, mishaps in the third and the fourth.

        Returns when that began and ended.
        """
        for product in range(1, 111):
            self.ask("PUT", self.shops[0], f"/products/{product}", 1_000_000)
        threads = [
            threading.Thread(target=self.customer, args=(self.shops[place % 2], place % 4 + 1))
            for place in range(10)
        ]
        # Each has a product of its own, which takes eight seconds to pack.
        threads += [
            threading.Thread(target=self.customer, args=(self.shops[2], 100 + place))
            for place in range(6)
        ]
        began = time.time()
        for thread in threads:
            thread.start()
        self.wait_for(seconds / 4)
        rush, calm = [], threading.Event()
        for place in range(130):
            arguments = (self.shops[place % 2], 1, calm)
            rush.append(threading.Thread(target=self.customer, args=arguments))
            rush[-1].start()
        self.wait_for(seconds / 4)
        calm.set()
        self.wait_for(seconds / 8)
        self.redis.send_signal(signal.SIGSTOP)
        self.wait_for(5)
        self.redis.send_signal(signal.SIGCONT)
        self.wait_for(seconds / 8)
        delete = ["redis-cli", "-p", str(self.redis_port), "del", "lock:product:103"]
        subprocess.run(delete, check=True, stdout=subprocess.DEVNULL)
        self.wait_for(seconds / 4 - 5)
        ended = time.time()
        self.over.set()
        for thread in threads + rush:
            thread.join()
        return began, ended

    def wait_for(self, seconds):
        self.over.wait(seconds)

    def customer(self, shop, product, calm=None):
        while not self.over.is_set() and not (calm and calm.is_set()):
            self.ask("POST", shop, f"/products/{product}/orders", 1)
            self.over.wait(0.05)

    def ask(self, method, shop, path, quantity):
        body = json.dumps({"quantity": quantity}).encode()
        headers = {"content-type": "application/json"}
        url = f"http://127.0.0.1:{shop}{path}"
        request = urllib.request.Request(url, body, headers, method=method)
        # Refusals are what is to be seen.
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=60).close()

    def end(self):
        self.over.set()
        for process in reversed(self.processes):
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
