#!/usr/bin/env python3
"""Test errors of biases, `fit` and `gibbs`, with and without matrices, on real data, parts of it, and planted data.

    python3 benches/accuracy/table.py run --program target/release/s3cmtf --data FOLDER --results results.jsonl
    python3 benches/accuracy/table.py report --results results.jsonl

`run` fits every data set, part and seed with one thread per fit, and appends one line per fit to the results; fits that are there
already are not repeated. `report` prints Markdown tables. FOLDER has one folder per data set, with tensor.train.tns and
tensor.test.tns (or .tns.gz) in it.
"""

import argparse
import concurrent.futures
import gzip
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Data sets with their coupled matrices (mode, file).
REAL = {
    "ml100k": [(2, "movie_genre.tns"), (1, "user_attr.tns")],
    "ml10m_1000users": [(2, "movie_genre.tns")],
    "ml1m_half": [(2, "movie_genre.tns"), (1, "user_attr.tns")],
    "yelp_toy": [(1, "user_user.tns"), (2, "business_city.tns"), (2, "business_category.tns")],
    "nyctaxi3": [(1, "zone_attr.tns"), (2, "zone_attr.tns"), (3, "day_attr.tns")],
    "nyctaxi4_2022": [(1, "zone_attr.tns"), (2, "zone_attr.tns")],
    "yelp_hin": [
        (1, "user_user.tns"),
        (1, "user_compliment.tns"),
        (2, "business_city.tns"),
        (2, "business_category.tns"),
    ],
}
PERCENTS = (5, 10, 25, 50, 100)

# Arguments of `s3cmtf generate`; matrices of planted data are written by it.
PLANTED = {
    "noise, 3000 x 2000": "--dims 3000,2000 --entries 40000 --rank 1 --noise 1000",
    "noise, 1000 x 800 x 30": "--dims 1000,800,30 --entries 60000 --rank 1 --noise 1000 --matrix 2:20:full",
    "noise, 5000 x 4000 x 3000": "--dims 5000,4000,3000 --entries 45000 --rank 1 --noise 1000",
    "rank 5, noise 0.1, 1000 x 800": "--dims 1000,800 --entries 60000 --rank 5 --noise 0.1 --matrix 1:30:full",
    "rank 5, noise 1, 1000 x 800": "--dims 1000,800 --entries 60000 --rank 5 --noise 1 --matrix 2:30:full:ones=0.1",
    "Tucker 5, noise 0.1, 500 x 400 x 30": "--dims 500,400,30 --entries 60000 --rank 5 --noise 0.1 --matrix 2:20:full",
    "CP 8, noise 1, 500 x 400 x 30": "--dims 500,400,30 --entries 60000 --rank 8 --model cp --noise 1 --matrix 1:20:full",
    "CP 8, noise 0.5, 5000 x 4000 x 300": "--dims 5000,4000,300 --entries 150000 --rank 8 --model cp --noise 0.5",
    "Tucker 4 around 1, noise 0.3, 5000 x 4000 x 3000": "--dims 5000,4000,3000 --entries 100000 --rank 4 --factor-mean 1 --noise 0.3",
    "CP 4, noise 0.5, 300 x 200 x 40 x 20": "--dims 300,200,40,20 --entries 80000 --rank 4 --model cp --noise 0.5",
    "Tucker 3, noise 0.3, 40 x 30 x 10": "--dims 40,30,10 --entries 2000 --rank 3 --noise 0.3 --matrix 1:6:full",
    "groups, noise 0.5, 2000 x 1500 x 30": "--dims 2000,1500,30 --entries 41000 --rank 4 --noise 0.5 --matrix 2:40:full:groups=0.6",
}

BIASES = "--algorithm als --model cp --rank 1 --start identity --lambda-reg 1e12 --epochs 15".split()
GIBBS = ["--algorithm", "gibbs"]
METHODS = {"biases": (BIASES, False), "fit": ([], False), "fit, matrices": ([], True), "gibbs": (GIBBS, False), "gibbs, matrices": (GIBBS, True)}
# Error of the first relative to the second, and the largest increase that is accepted.
BOUNDS = [
    ("fit", "biases", 0.1),
    ("gibbs", "biases", 0.1),
    ("gibbs", "fit", 0.2),
    ("fit, matrices", "fit", 0.1),
    ("gibbs, matrices", "gibbs", 0.1),
]


def source_file(folder, name):
    for path in (folder / name, folder / f"{name}.gz"):
        if path.exists():
            return path
    sys.exit(f"{folder / name}: there is no such file; --data names the folder that has a folder for each data set")


def write_part(source, path, percent, seed):
    """Writes a random part of the lines of a file."""
    with gzip.open(source, "rt") if source.suffix == ".gz" else open(source) as file:
        lines = file.readlines()
    chosen = random.Random(seed).sample(range(len(lines)), round(len(lines) * percent / 100))
    # Renamed, so that an interrupted run writes the part again.
    unfinished = path.with_suffix(".part")
    unfinished.write_text("".join(lines[i] for i in sorted(chosen)))
    unfinished.rename(path)


def prepare(arguments, work, name, percent, seed):
    """Writes a part of a data set, or planted data. Returns paths of training entries, test entries and matrices."""
    folder = work / re.sub(r"\W+", "-", f"{name} {percent} {seed}")
    if name in PLANTED:
        if not (folder / "tensor.test.coo").exists():
            command = [arguments.program, "generate", "-o", folder, "--no-truth", "--test", "0.2", "--seed", str(100 + seed)]
            subprocess.run(command + PLANTED[name].split(), check=True, capture_output=True)
        modes = re.findall(r"--matrix (\d)", PLANTED[name])
        matrices = [f"{mode}:{folder}/matrix{i}.coo" for i, mode in enumerate(modes, 1)]
        return folder / "tensor.train.coo", folder / "tensor.test.coo", matrices
    source = Path(arguments.data) / name
    train = source_file(source, "tensor.train.tns")
    if percent < 100:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "train.tns").exists():
            write_part(train, folder / "train.tns", percent, seed)
        train = folder / "train.tns"
    return train, source_file(source, "tensor.test.tns"), [f"{mode}:{source / file}" for mode, file in REAL[name]]


def cpu_seconds(process):
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def fit_one(arguments, work, key):
    build, method, name, percent, seed = key
    program = arguments.before if build == "before" else arguments.program
    train, test, matrices = prepare(arguments, work, name, percent, seed)
    options, coupled = METHODS[method]
    if coupled and not matrices:
        return None
    model = work / f"{os.getpid()}-{time.monotonic_ns()}.s3m"
    command = [program, "fit", "--tensor", train, "--test", test, "--threads", "1", "--seed", str(seed), "--json", "-o", model, *options]
    for matrix in matrices if coupled else []:
        command += ["--matrix", matrix]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as messages:
        process = subprocess.Popen([str(c) for c in command], stdout=output, stderr=messages)
        seconds = cpu_seconds(process)
        output.seek(0), messages.seek(0)
        if process.returncode:
            raise RuntimeError(f"{key}: {messages.read()[-400:]}")
        lines = [json.loads(line) for line in output]
    summary = next(line["summary"] for line in lines if "summary" in line)
    result = {"key": key, "rmse": summary["test_rmse"], "train_rmse": summary["train_rmse"], "cpu_seconds": seconds}
    result["selected"] = [line.get("text") for line in lines if line.get("event") == "selected"]
    if method == "gibbs" and build == "now":
        evaluation = subprocess.run([program, "eval", model, test, "--json"], capture_output=True, text=True, check=True)
        result["evaluation"] = json.loads(evaluation.stdout.splitlines()[0])
    model.unlink()
    return result


def keys(arguments):
    """All fits, those that take longest first."""
    def size(part):
        name, percent = part
        return 0 if name in PLANTED else percent * source_file(Path(arguments.data) / name, "tensor.train.tns").stat().st_size

    names = sorted([(name, percent) for name in REAL for percent in PERCENTS] + [(name, 100) for name in PLANTED], key=size, reverse=True)
    for name, percent in names:
        if not re.search(arguments.only, f"{name} {percent}") or arguments.skip and re.search(arguments.skip, f"{name} {percent}"):
            continue
        for seed in range(arguments.seeds):
            for method in METHODS:
                yield ("now", method, name, percent, seed)
                if arguments.before and seed < arguments.before_seeds and method != "biases":
                    yield ("before", method, name, percent, seed)


def load(path):
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        return {tuple(r["key"]): r for r in map(json.loads, file)}


def run(arguments):
    done = load(arguments.results)
    todo = [key for key in keys(arguments) if key not in done]
    end = time.monotonic() + arguments.minutes * 60
    work = Path(arguments.work or tempfile.mkdtemp())
    work.mkdir(parents=True, exist_ok=True)

    def work_on(key):
        return fit_one(arguments, work, key) if time.monotonic() < end else None

    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        for future in [pool.submit(prepare, arguments, work, *part) for part in dict.fromkeys(key[2:] for key in todo)]:
            future.result()
    failures = 0
    with open(arguments.results, "a") as results, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(work_on, key) for key in todo]):
            if error := future.exception():
                failures += 1
                print(error, file=sys.stderr)
            elif result := future.result():
                results.write(json.dumps(result) + "\n")
                results.flush()
    print(f"{len(load(arguments.results))} fits in {arguments.results}")
    return failures


def label(part):
    return f"{part[0]}, {part[1]}%" if part[0] in REAL else part[0]


def mean_and_error(numbers):
    mean = statistics.fmean(numbers)
    return mean, statistics.stdev(numbers) / math.sqrt(len(numbers)) if len(numbers) > 1 else math.nan


def report(arguments):
    if not (results := load(arguments.results)):
        sys.exit(f"{arguments.results}: there are no results; make them by `run`")
    parts = list(dict.fromkeys((k[2], k[3]) for k in sorted(results, key=lambda k: (list({**REAL, **PLANTED}).index(k[2]), -k[3]))))

    def seeds(build, method, part):
        return {k[4]: r for k, r in results.items() if k[:4] == (build, method, *part)}

    print("| data | seeds | " + " | ".join(METHODS) + " | before: fit | matrices | gibbs | matrices |\n|" + " --- |" * (len(METHODS) + 6))
    for part in parts:
        cells = [label(part), str(len(seeds("now", "fit", part)))]
        for build in ("now", "before"):
            for method in METHODS:
                if build == "now" or method != "biases":
                    found = [r["rmse"] for r in seeds(build, method, part).values()]
                    cells.append(f"{statistics.fmean(found):{'.4f' if found[0] < 100 else '.1f'}}" if found else "")
        print("| " + " | ".join(cells) + " |")

    print("\nIncrease in percent, mean and twice its standard error; bold: above the bound plus two standard errors\n")
    print("| data | " + " | ".join(f"{a} / {b} (at most {x})" for a, b, x in BOUNDS) + " |\n|" + " --- |" * (len(BOUNDS) + 1))
    for part in parts:
        cells = [label(part)]
        for a, b, bound in BOUNDS:
            first, second = seeds("now", a, part), seeds("now", b, part)
            ratios = [100 * (first[s]["rmse"] / second[s]["rmse"] - 1) for s in first if s in second]
            if not ratios:
                cells.append("")
                continue
            mean, error = mean_and_error(ratios)
            text = f"{mean:+.2f}" + ("" if math.isnan(error) else f" ({2 * error:.2f})")
            cells.append(f"**{text}**" if mean > bound + (0 if math.isnan(error) else 2 * error) else text)
        print("| " + " | ".join(cells) + " |")

    print("\nCoverage of 50% / 90% intervals of gibbs in percent, mean over seeds\n")
    print("| data | all | by decile of row length | rows without training entries |\n| --- | --- | --- | --- |")
    for part in parts:
        evaluations = [r["evaluation"]["distribution"] for r in seeds("now", "gibbs", part).values() if r.get("evaluation", {}).get("distribution")]
        if not evaluations:
            continue

        def coverage(groups):
            count = sum(g["count"] for g in groups)
            if not count:
                return ""
            return " / ".join(f"{100 * sum(g[c] * g['count'] for g in groups) / count:.0f}" for c in ("coverage_50", "coverage_90"))

        groups = [e["by_row_length"] for e in evaluations]
        unseen = [g for e in groups for g in e if g["max_row_entries"] == 0]
        deciles = zip(*([g for g in e if g["max_row_entries"] > 0] for e in groups))
        total = [{"count": 1, **e} for e in evaluations]
        print(f"| {label(part)} | {coverage(total)} | {', '.join(map(coverage, deciles))} | {coverage(unseen)} |")

    compared = [method for method in METHODS if method != "biases"]
    print("\nCPU time relative to before, seeds of both builds\n")
    print("| data | " + " | ".join(compared) + " |\n|" + " --- |" * (len(compared) + 1))
    for part in parts:
        cells = []
        for method in compared:
            now, before = seeds("now", method, part), seeds("before", method, part)
            times = [[build[s]["cpu_seconds"] for s in now if s in before] for build in (now, before)]
            cells.append(f"{sum(times[0]) / sum(times[1]):.2f}" if times[0] else "")
        if any(cells):
            print(f"| {label(part)} | " + " | ".join(cells) + " |")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, function in (("run", run), ("report", report)):
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        command.add_argument("--results", required=True, help="file of results, one JSON object per line")
        if name == "run":
            command.add_argument("--program", required=True)
            command.add_argument("--data", required=True, help="folder of the data sets")
            command.add_argument("--before", help="an older build of the program, fitted to the same parts")
            command.add_argument("--before-seeds", type=int, default=1)
            command.add_argument("--seeds", type=int, default=5)
            command.add_argument("--jobs", type=int, default=os.cpu_count())
            command.add_argument("--only", default="", help="regular expression of the data sets and parts to fit")
            command.add_argument("--skip", help="regular expression of those not to fit")
            command.add_argument("--minutes", type=float, default=1e6, help="begin no fit after this time")
            command.add_argument("--work", help="folder for the parts of the data")
    arguments = parser.parse_args()
    sys.exit(arguments.function(arguments))


if __name__ == "__main__":
    main()
