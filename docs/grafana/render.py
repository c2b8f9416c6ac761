#!/usr/bin/env python3
"""Draws docs/grafana/dashboard.svg: the queries of lockattr.json, asked of a real Prometheus.

It is no picture by Grafana, but what Grafana would ask for, over two minutes of the example `shop` under
load. Needs `prometheus`, `redis-server` and PostgreSQL (apt-get install), and the shop:

    cargo build -p lockattr-shop && python3 docs/grafana/render.py [--seconds 120]
"""

import argparse
import json
import pathlib
import tempfile
import urllib.parse
import urllib.request

import svg
from scene import Scene, free_port, listens, until

HERE = pathlib.Path(__file__).resolve().parent
# What Grafana would put in place of its variables.
VARIABLES = {"$__rate_interval": "10s", "$template": ".*", "$manager": ".*", "$store": ".*"}


def start_prometheus(scene):
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(HERE / "alerts.yml")],
        "scrape_configs": [
            {
                "job_name": "shop",
                "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in scene.shops]}],
            }
        ],
    }
    # JSON is YAML.
    path = scene.directory / "prometheus.yml"
    path.write_text(json.dumps(config))
    port = free_port()
    scene.start(
        "prometheus",
        f"--config.file={path}",
        f"--storage.tsdb.path={scene.directory / 'prometheus'}",
        f"--web.listen-address=127.0.0.1:{port}",
    )
    until("Prometheus listens", lambda: listens(port))
    return port


def ask(port, path, **parameters):
    query = urllib.parse.urlencode(parameters)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}?{query}") as answer:
        return json.load(answer)["data"]


def series(port, target, start, end):
    """The lines of one query: for each its name, and its points in seconds since the start."""
    expression, legend = target["expr"], target["legendFormat"]
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    data = ask(port, "query_range", query=expression, start=start, end=end, step=1)
    for line in data["result"]:
        name = legend
        for label, value in line["metric"].items():
            name = name.replace("{{%s}}" % label, value)
        points = [(at - start, float(value)) for at, value in line["values"]]
        yield name, [(at, value) for at, value in points if value == value]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seconds", type=int, default=120)
    arguments.add_argument("--output", type=pathlib.Path, default=HERE / "dashboard.svg")
    arguments = arguments.parse_args()
    dashboard = json.loads((HERE / "lockattr.json").read_text())
    with tempfile.TemporaryDirectory(prefix="lockattr-render-") as directory:
        scene = None
        try:
            scene = Scene(directory)
            port = start_prometheus(scene)
            start, end = scene.play(arguments.seconds)
            panels = []
            for panel in dashboard["panels"]:
                lines = [
                    line
                    for target in panel["targets"]
                    for line in series(port, target, start, end)
                ]
                if not any(points for _, points in lines):
                    raise SystemExit(f"render.py: nothing to draw for {panel['title']!r}")
                panels.append((panel, lines))
            arguments.output.write_text(svg.dashboard(dashboard["title"], panels, end - start))
            alerts = ask(port, "alerts")["alerts"]
            for name, state in sorted({(a["labels"]["alertname"], a["state"]) for a in alerts}):
                print(f"{name}: {state}")
        finally:
            if scene:
                scene.end()
    print(f"written: {arguments.output}")


if __name__ == "__main__":
    main()
