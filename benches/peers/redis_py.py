"""redis-py's `Lock` as a worker of the benches: threads that take a lock again and again.

    redis_py.py URL KEY TASKS one|each BODY-IN-MICROSECONDS ordered|any-order

Speaks as `worker.rs` does: `ready`, then for each `go MICROSECONDS` what came of it.
"""

import sys
import threading
import time

try:
    import redis
except ImportError as error:
    print("absent", error, flush=True)
    sys.exit()

RUN_IN = 0.05
TTL = 10


class Task:
    """One thread's acquisitions of one key."""

    # Who had the lock last.
    last = None

    def __init__(self, client, key, body):
        self.lock = client.lock(key, timeout=TTL, thread_local=False)
        self.body = body

    def run(self, start, end):
        self.counted = self.all = self.hand_offs = self.bodies = 0
        self.waits, self.failure = [], None
        try:
            while (asked := time.monotonic()) < end:
                self.lock.acquire()
                held = time.monotonic()
                self.all += 1
                self.hand_offs += Task.last is not self
                Task.last = self
                if asked >= start:
                    self.waits.append(round((held - asked) * 1e9))
                if self.body:
                    time.sleep(self.body)
                if start <= held < end:
                    self.counted += 1
                    self.bodies += round((time.monotonic() - held) * 1e9)
                self.lock.release()
        except redis.RedisError as error:
            self.failure = error


def go(tasks, window):
    start = time.monotonic() + RUN_IN
    threads = [threading.Thread(target=task.run, args=(start, start + window)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    failures = [task.failure for task in tasks if task.failure]
    if failures:
        return print("failed", failures[0], flush=True)
    print("tasks", *(task.counted for task in tasks))
    print("all", sum(task.all for task in tasks))
    print("hand-offs", sum(task.hand_offs for task in tasks))
    print("bodies", sum(task.bodies for task in tasks))
    for task in tasks:
        for nanos in task.waits:
            print("wait", nanos, 1)
    print("done", flush=True)


def main():
    url, key, tasks, keys, body, _ = sys.argv[1:]
    client = redis.Redis.from_url(url)
    names = [key if keys == "one" else f"{key}:{n}" for n in range(int(tasks))]
    tasks = [Task(client, name, int(body) / 1e6) for name in names]
    with client.lock(f"{key}:warm", timeout=TTL):
        pass
    print("ready", flush=True)
    for line in sys.stdin:
        go(tasks, int(line.split()[1]) / 1e6)


main()
