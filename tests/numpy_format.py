"""Reads and writes binary COO files with NumPy alone, from docs/reference/formats.md.

    numpy_format.py write FOLDER     writes a file of known contents for every order and kind
    numpy_format.py read FILE...     prints what each file holds, as a line of JSON
"""

import json
import sys
import zlib

import numpy as np

MAGIC = b"\x89S3COO\r\n"
KINDS = {"none": 0, "f32": 1, "f64": 2}
TYPES = {1: np.dtype("<f4"), 2: np.dtype("<f8")}


def write(path, dims, columns, values, weights=None, inferred=False):
    order, count = len(dims), len(values)
    slots = [None] * 10
    for n, column in enumerate(columns):
        slots[n] = np.ascontiguousarray(column, dtype="<u4").tobytes()
    slots[8] = values.tobytes()
    if weights is not None:
        slots[9] = weights.tobytes()
    table = np.zeros((10, 3), dtype="<u8")
    body, end = [], 512
    for slot, data in enumerate(slots):
        if data is None:
            continue
        offset = (end + 63) // 64 * 64
        body.append(b"\0" * (offset - end) + data)
        end = offset + len(data)
        table[slot] = offset, len(data), zlib.crc32(data)
    kind = 1 if values.dtype.itemsize == 4 else 2
    weight_kind = 0 if weights is None else (1 if weights.dtype.itemsize == 4 else 2)
    sizes = np.zeros(8, dtype="<u8")
    sizes[:order] = dims
    head = MAGIC
    head += np.array([1, 512, order, kind, weight_kind, int(inferred)], dtype="<u4").tobytes()
    head += np.array([count, end], dtype="<u8").tobytes() + sizes.tobytes() + table.tobytes()
    head += b"\0" * (504 - len(head))
    head += np.array([zlib.crc32(head)], dtype="<u8").tobytes()
    with open(path, "wb") as out:
        out.write(head + b"".join(body))


def read(path):
    data = open(path, "rb").read()
    head = data[:512]
    assert head[:8] == MAGIC, "magic"
    version, length, order, kind, weight_kind, flags = np.frombuffer(head, "<u4", 6, 8)
    assert version == 1 and length == 512 and flags in (0, 1)
    assert int(np.frombuffer(head, "<u8", 1, 504)[0]) == zlib.crc32(head[:504]), "header checksum"
    count, size = (int(x) for x in np.frombuffer(head, "<u8", 2, 32))
    assert size == len(data), "file length"
    dims = np.frombuffer(head, "<u8", 8, 48)
    assert not dims[order:].any() and not any(head[352:504])
    table = np.frombuffer(head, "<u8", 30, 112).reshape(10, 3)

    def section(slot, dtype):
        offset, nbytes, checksum = (int(x) for x in table[slot])
        assert offset % 64 == 0 and offset >= 512 and nbytes == count * dtype.itemsize
        assert zlib.crc32(data[offset : offset + nbytes]) == checksum, f"checksum of section {slot}"
        return np.frombuffer(data, dtype, count, offset)

    columns = [section(n, np.dtype("<u4")) for n in range(order)]
    values = section(8, TYPES[int(kind)])
    weights = section(9, TYPES[int(weight_kind)]) if weight_kind else None
    return dims[:order], columns, values, weights, bool(flags & 1)


def write_all(folder):
    count = 1000
    for order in range(2, 9):
        dims = [17 + n for n in range(order)]
        columns = [np.arange(count) * (n + 3) % dims[n] for n in range(order)]
        for kind in ("f32", "f64"):
            values = (np.arange(count) / 8 - 20).astype(TYPES[KINDS[kind]])
            for weight_kind in KINDS:
                weights = None
                if weight_kind != "none":
                    weights = (1 + np.arange(count) % 5).astype(TYPES[KINDS[weight_kind]])
                write(f"{folder}/{order}-{kind}-{weight_kind}.coo", dims, columns, values, weights)


def print_all(paths):
    for path in paths:
        dims, columns, values, weights, inferred = read(path)
        print(
            json.dumps(
                {
                    "dims": dims.tolist(),
                    "columns": [c.tolist() for c in columns],
                    "values": values.tolist(),
                    "weights": None if weights is None else weights.tolist(),
                    "inferred": inferred,
                }
            )
        )


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write_all(sys.argv[2])
    else:
        print_all(sys.argv[2:])
