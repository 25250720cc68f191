"""Rod robots: what there is to draw of them, and their page."""
