"""Makes a package of the one file: type checkers read py.typed of packages alone."""

import os

from setuptools import setup
from setuptools.command.build_py import build_py


class Build(build_py):
    def run(self):
        to = os.path.join(self.build_lib, "paceline")
        self.mkpath(to)
        self.copy_file("paceline.py", os.path.join(to, "__init__.py"))
        self.copy_file("py.typed", to)


setup(cmdclass={"build_py": Build})
