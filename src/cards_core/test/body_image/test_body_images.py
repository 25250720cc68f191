"""Body images: derivatives, fits, learning, files."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import least_squares

from cards_core.body_image.geometric import GeometricBodyImage
from cards_core.body_image.interface import Stretch
from cards_core.body_image.learned import LearnedBodyImage
from cards_core.body_image.polynomial import PolynomialBodyImage
from cards_core.errors import CardsError, ParameterError, ShapeError
from cards_core.formats import load
from cards_core.robot.perturb import perturbed
from random_robots import random_robot

STRETCHY = 2e-5


def balls():
    """A robot with ball joints."""
    return random_robot(3, n_links=3, kinds=("ball", "revolute", "ball"))


def by_differences(image, q, tensions, step=1e-6):
    """Return dl/dq along the tangent directions."""
    tree = image.robot.tree
    columns = []
    for direction in np.eye(tree.nv):
        ends = [
            image.evaluate(tree.integrate(q, sign * step * direction), tensions)[0].copy()
            for sign in (1.0, -1.0)
        ]
        columns.append((ends[0] - ends[1]) / (2.0 * step))
    return np.array(columns).T


def image_of(kind, robot, rng):
    m = len(robot.muscles)
    stretch = Stretch(np.full(m, STRETCHY), np.full(m, 1e-5))
    geometric = GeometricBodyImage(robot, stretch)
    if kind == "geometric":
        return geometric
    if kind == "polynomial":
        return PolynomialBodyImage.fitted(geometric, 3, lower=[-0.5] * 4, upper=[0.5] * 4)
    image = LearnedBodyImage(geometric)
    for _ in range(200):
        q, tensions = robot.tree.random(rng, span=0.5), rng.uniform(10.0, 100.0, m)
        image.add(q, tensions, image.lengths(q, tensions) + rng.normal(0.0, 3e-3, m))
    for _ in range(100):
        image.update()
    return image


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("geometric", "roboy_arm"),
        ("polynomial", "roboy_arm"),
        ("learned", "roboy_arm"),
        ("learned", "balls"),
        ("learned", "bm_arm"),
        ("geometric", "wrap_elbow"),
    ],
)
def test_derivatives_are_those_of_the_lengths(kind, name):
    rng = np.random.default_rng(0)
    robot = balls() if name == "balls" else load(name)
    image = image_of(kind, robot, rng)
    for _ in range(20):
        q = robot.tree.random(rng, span=0.4)
        tensions = rng.uniform(0.0, 150.0, len(robot.muscles))
        jacobian = image.evaluate(q, tensions)[1].copy()
        assert jacobian == pytest.approx(by_differences(image, q, tensions), abs=2e-8)


def test_stretch_is_that_of_the_wire_and_of_its_fixtures():
    robot = load("roboy_arm")
    m = len(robot.muscles)
    rigid = GeometricBodyImage(robot)
    soft = GeometricBodyImage(robot, Stretch(np.full(m, 1e-5), np.full(m, 2e-6)))
    q, tensions = robot.tree.home, np.linspace(0.0, 300.0, m)
    path = rigid.lengths(q)
    assert soft.lengths(q) == pytest.approx(path, abs=0.0)
    assert soft.lengths(q, tensions) == pytest.approx(path - (1e-5 + 2e-6 * path) * tensions)
    with pytest.raises(ParameterError, match="alpha"):
        Stretch(np.array([-1e-6]), np.zeros(1))


def test_polynomials_come_closer_with_every_degree():
    robot = load("roboy_arm")
    exact = GeometricBodyImage(robot)
    poses = np.random.default_rng(9).uniform(-0.5, 0.5, (200, 4))
    rest = np.zeros(len(robot.muscles))
    errors, slopes = [], []
    for degree in (1, 3, 5):
        image = PolynomialBodyImage.fitted(exact, degree, lower=[-0.5] * 4, upper=[0.5] * 4)
        away, bent = [], []
        for q in poses:
            length, jacobian = image.evaluate(q, rest)
            wanted = exact.evaluate(q, rest)
            away.append(length - wanted[0])
            bent.append(jacobian - wanted[1])
        errors.append(np.sqrt(np.mean(np.square(away))))
        slopes.append(np.sqrt(np.mean(np.square(bent))))
        assert image.rms.max() < 5.0 * errors[-1]
    assert errors[2] < 1e-4
    assert errors[2] < 0.2 * errors[1] < 0.04 * errors[0]
    assert slopes[2] < 0.4 * slopes[1]
    # a muscle does not depend on joints that it does not span
    spanned = np.abs(exact.evaluate(robot.tree.home, rest)[1]) > 0.0
    assert not spanned.all()
    assert np.all((np.abs(image.evaluate(robot.tree.home, rest)[1]) > 0.0) <= spanned)


def test_polynomials_reproduce_a_polynomial_exactly():
    robot = load("planar_2r")
    rng = np.random.default_rng(2)
    q = rng.uniform(-1.0, 1.0, (60, 2))

    def law(x, y):
        return [0.5 + 0.1 * x - 0.02 * x * y**2, 0.3 - 0.1 * y + 0.03 * x**3]

    lengths = np.array([law(*row) * (len(robot.muscles) // 2) for row in q])
    spanned = np.ones((lengths.shape[1], 2), dtype=bool)
    image = PolynomialBodyImage(robot, q, lengths, spanned, 3)
    x, y = 0.3, -0.7
    found, jacobian = image.evaluate(np.array([x, y]), np.zeros(lengths.shape[1]))
    assert found[:2] == pytest.approx(law(x, y), abs=1e-12)
    assert jacobian[:2] == pytest.approx(
        np.array([[0.1 - 0.02 * y**2, -0.04 * x * y], [0.09 * x**2, -0.1]]), abs=1e-12
    )


def test_what_polynomials_cannot_do_is_said():
    with pytest.raises(CardsError, match="ball joint"):
        PolynomialBodyImage.fitted(GeometricBodyImage(balls()), 2)
    robot = load("planar_2r")
    m = len(robot.muscles)
    with pytest.raises(ParameterError, match=r"5 poses for the 10 terms"):
        PolynomialBodyImage(robot, np.zeros((5, 2)), np.zeros((5, m)), np.ones((m, 2)) > 0, 3)
    with pytest.raises(ParameterError, match="degree"):
        PolynomialBodyImage(robot, np.zeros((5, 2)), np.zeros((5, m)), np.ones((m, 2)) > 0, 0)
    free = replace(
        robot,
        joints=tuple(
            replace(j, axes=tuple(replace(a, lower=-np.inf) for a in j.axes)) for j in robot.joints
        ),
    )
    with pytest.raises(ParameterError, match="lower and upper"):
        PolynomialBodyImage.fitted(GeometricBodyImage(free), 2)


def resting_pose(truth, targets, q):
    """Return where muscles of equal stiffness, held at lengths, bring a robot without weight."""
    rest = np.zeros(len(targets))
    found = least_squares(
        lambda x: truth.evaluate(x, rest)[0] - targets,
        q,
        jac=lambda x: truth.evaluate(x, rest)[1].copy(),
        xtol=1e-12,
    )
    return found.x


def test_learning_brings_the_robot_where_it_should_be():
    """Attachments off by 2 mm: joint error after learning at most 40 % of before."""
    robot = load("roboy_arm")
    truth = GeometricBodyImage(perturbed(robot, attachment_offset=2e-3, seed=4))
    image = LearnedBodyImage(GeometricBodyImage(robot))
    rng = np.random.default_rng(7)
    poses = rng.uniform(-0.5, 0.5, (30, 4))

    def error():
        found = [resting_pose(truth, image.lengths(q), q) - q for q in poses]
        return float(np.sqrt(np.mean(np.square(found))))

    before = error()
    rest = np.zeros(len(robot.muscles))
    # five minutes: every 2 s another pose, ten updates a second
    for _ in range(150):
        wanted = rng.uniform(-0.6, 0.6, 4)
        reached = resting_pose(truth, image.lengths(wanted), wanted)
        image.add(reached, rest, truth.lengths(reached))
        for _ in range(20):
            image.update()
    after = error()
    assert before > 2e-3
    assert after <= 0.4 * before


def test_a_saved_image_is_the_same_and_of_one_robot_only(tmp_path):
    rng = np.random.default_rng(1)
    robot = load("roboy_arm")
    image = image_of("learned", robot, rng)
    path = tmp_path / "image.npz"
    image.save(path)
    other = LearnedBodyImage(image.geometric, seed=3)
    q, tensions = robot.tree.home, np.full(len(robot.muscles), 50.0)
    assert not np.array_equal(other.lengths(q, tensions), image.lengths(q, tensions))
    other.load(path)
    assert np.array_equal(other.lengths(q, tensions), image.lengths(q, tensions))

    elsewhere = LearnedBodyImage(GeometricBodyImage(load("planar_2r")))
    before = elsewhere.lengths(elsewhere.robot.tree.home)
    with pytest.raises(CardsError, match=r"body image of 'roboy_arm'.*expected: 'planar_2r'"):
        elsewhere.load(path)
    assert np.array_equal(elsewhere.lengths(elsewhere.robot.tree.home), before)
    changed = LearnedBodyImage(GeometricBodyImage(perturbed(robot, attachment_offset=1e-3)))
    with pytest.raises(CardsError, match="made for the model"):
        changed.load(path)
    (tmp_path / "nothing.npz").write_bytes(b"PK")
    with pytest.raises(CardsError, match=r"nothing\.npz"):
        other.load(tmp_path / "nothing.npz")
    np.savez(tmp_path / "table.npz", a=np.zeros(3))
    with pytest.raises(CardsError, match="no body image"):
        other.load(tmp_path / "table.npz")
    with np.load(path) as data:
        damaged = dict(data)
    damaged["model"] = np.full_like(damaged["model"], np.nan)
    np.savez(tmp_path / "damaged.npz", **damaged)
    with pytest.raises(CardsError, match="its 'model' is no text"):
        other.load(tmp_path / "damaged.npz")


def test_samples_that_are_none_are_refused():
    robot = load("roboy_arm")
    image = LearnedBodyImage(GeometricBodyImage(robot))
    m = len(robot.muscles)
    assert image.update() == 0.0
    with pytest.raises(ShapeError, match="not finite"):
        image.add(robot.tree.home, np.full(m, np.nan), np.ones(m))
    with pytest.raises(ShapeError, match="shapes"):
        image.add(robot.tree.home, np.ones(m - 1), np.ones(m))
    assert image.samples == 0
    with pytest.raises(ShapeError):
        image.lengths(robot.tree.home, np.ones(3))
