"""Computes crc32c, also of data repeated very often, for records that tests make by hand."""
POLYNOMIAL = 0x82f63b78


def _table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = _table()


def of(data, crc=0):
    crc ^= 0xffffffff
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xff] ^ crc >> 8
    return crc ^ 0xffffffff


def _apply(matrix, vector):
    total = at = 0
    while vector:
        if vector & 1:
            total ^= matrix[at]
        vector >>= 1
        at += 1
    return total


def combine(first, second, length):
    """Returns the crc of two concatenated pieces, from the crc of each and the length of the
    second."""
    matrix = [POLYNOMIAL] + [1 << bit for bit in range(31)]     # shifts by one zero bit
    for _ in range(3):
        matrix = [_apply(matrix, row) for row in matrix]
    while length:  # shifts by a zero byte, then by powers of it
        if length & 1:
            first = _apply(matrix, first)
        matrix = [_apply(matrix, row) for row in matrix]
        length >>= 1
    return first ^ second


def repeated(data, count):
    total, part, length = 0, of(data), len(data)
    while count:
        if count & 1:
            total = combine(total, part, length)
        part, length, count = combine(part, part, length), 2 * length, count >> 1
    return total
