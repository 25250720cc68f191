"""Rod robots: their geometry for drawing, their page in the browser and its node."""
