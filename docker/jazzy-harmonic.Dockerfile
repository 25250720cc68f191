# CARDS with ROS 2 Jazzy and Gazebo Harmonic, both from packages.
FROM osrf/ros:jazzy-desktop

# Gazebo with its Python bindings, from Gazebo's own repository: ROS's package of it has them from 0.0.13 on only
RUN apt-get update && apt-get install -y --no-install-recommends curl python3-venv gcc libc6-dev \
    && curl -sSf https://packages.osrfoundation.org/gazebo.gpg -o /usr/share/keyrings/gazebo.gpg \
    && . /etc/os-release \
    && echo "deb [signed-by=/usr/share/keyrings/gazebo.gpg] https://packages.osrfoundation.org/gazebo/ubuntu-stable $VERSION_CODENAME main" \
        > /etc/apt/sources.list.d/gazebo.list \
    && apt-get update && apt-get install -y --no-install-recommends gz-harmonic python3-gz-sim8 python3-gz-transport13 python3-gz-msgs10 python3-sdformat14 \
    && rm -rf /var/lib/apt/lists/*

COPY . /cards
WORKDIR /cards
SHELL ["/bin/bash", "-c"]
RUN source /opt/ros/jazzy/setup.bash && ./cards setup --test && .venv/bin/python -m colcon build

ENTRYPOINT ["/bin/bash", "-c", "source /cards/install/setup.bash && exec \"$@\"", "--"]
CMD ["ros2", "launch", "cards_bringup", "roboy_arm.launch.py", "headless:=true", "simulator:=gazebo"]
