"""Visualization: pages in the browser, markers in RViz and Gazebo, plots, run folders."""
