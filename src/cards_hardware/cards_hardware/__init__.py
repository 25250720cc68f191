"""Real robots: the protocol of the muscle boards, the link to them, the bridge to ROS topics."""
