"""Hardware in the loop: the nodes of ``sim:=false`` on emulated boards with a simulated robot."""
