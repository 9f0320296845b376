"""How the package perseas is built: `pip install --no-build-isolation ./client/python`, and
`make install`. Its version is the tree's.
"""
import os
import pathlib

from setuptools import setup

HERE = pathlib.Path(__file__).resolve().parent
os.chdir(HERE)

setup(
    name="perseas",
    version=(HERE.parents[1] / "VERSION").read_text().strip(),
    description="Transactions on memory that is mirrored on other nodes",
    license="BSD-2-Clause",
    packages=["perseas"],
    package_data={"perseas": ["py.typed", "*.pyi"]},
    python_requires=">=3.11",
    install_requires=["cffi>=1.15"],
    extras_require={"numpy": ["numpy"]},
    cffi_modules=["native_build.py:ffi"],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    zip_safe=False,
)
