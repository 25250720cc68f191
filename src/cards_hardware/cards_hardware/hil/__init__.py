"""Hardware in the loop: emulated boards, and the robot behind them."""
