"""Build, check and describe what is published: wheels, sdist, single file, checksums, SBOM.

Runs in the environment of development (``make release``, ``make wheels``, ``make pyz``); no part of
what is installed. Uses the standard library, and the programs of `release.tools` by their command.
"""
