"""The documentation as a site: pages of ``docs/``, pages generated from the code, and Sphinx.

The pages in ``docs/`` are written for GitHub and stay as they are. What is generated exists only
while a site is built, so it cannot differ from the code.
"""
