# CARDS without an installed ROS: everything as wheels in the environment of ./cards.
FROM python:3.12-slim

RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*

COPY . /cards
WORKDIR /cards
RUN ./cards setup

ENTRYPOINT ["./cards"]
CMD ["demo", "roboy_arm", "--headless", "--mode", "lockstep"]
