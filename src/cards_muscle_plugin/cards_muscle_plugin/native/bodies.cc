// Motion of links and joints of a Gazebo model, and wrenches on links, one call each.
//
// Gazebo's Python bindings have one call per link and quantity, and Link::WorldPose walks up to
// the world each time, although Physics has written the pose already. Here the components are read
// as they are. The matrices are those of `cards_muscle_plugin.gazebo.GazeboLink`, to the last bit.

#include <cmath>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <gz/math/Pose3.hh>
#include <gz/math/Vector3.hh>
#include <gz/sim/EntityComponentManager.hh>
#include <gz/sim/Link.hh>
#include <gz/sim/components/AngularVelocity.hh>
#include <gz/sim/components/ExternalWorldWrenchCmd.hh>
#include <gz/sim/components/JointPosition.hh>
#include <gz/sim/components/JointVelocity.hh>
#include <gz/sim/components/LinearVelocity.hh>
#include <gz/sim/components/Pose.hh>

namespace py = pybind11;
namespace sim = gz::sim;
namespace components = gz::sim::components;

using Array = py::array_t<double, py::array::c_style>;
using Manager = sim::EntityComponentManager;

namespace {

void WritePose(const gz::math::Pose3d &pose, double *out) {
  const auto &p = pose.Pos();
  const auto &r = pose.Rot();
  const double w = r.W(), x = r.X(), y = r.Y(), z = r.Z();
  const double rows[12] = {
      1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y), p.X(),
      2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x), p.Y(),
      2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y), p.Z()};
  std::memcpy(out, rows, sizeof rows);
}

void WriteVector(const gz::math::Vector3d &vector, double *out) {
  out[0] = vector.X();
  out[1] = vector.Y();
  out[2] = vector.Z();
}

gz::math::Vector3d Vector(const double *in) { return {in[0], in[1], in[2]}; }

struct LinkEntry {
  sim::Entity entity;
  double *pose;
  double *twist;
};

struct JointEntry {
  sim::Entity entity;
  double *position;
  double *velocity;
  std::size_t axes;
};

struct PulledEntry {
  std::size_t row;
  sim::Entity entity;
};

template <typename Message>
void Add(Message *message, const double *vector) {
  message->set_x(message->x() + vector[0]);
  message->set_y(message->y() + vector[1]);
  message->set_z(message->z() + vector[2]);
}

// As Link::AddWorldWrench without an offset, which looks for the pose that it does not need.
void AddWrench(Manager &ecm, sim::Entity entity, const double *wrench) {
  auto *command = ecm.Component<components::ExternalWorldWrenchCmd>(entity);
  if (!command) {
    ecm.CreateComponent(entity, components::ExternalWorldWrenchCmd());
    command = ecm.Component<components::ExternalWorldWrenchCmd>(entity);
    if (!command) return;  // the link is being removed
  }
  Add(command->Data().mutable_force(), wrench);
  Add(command->Data().mutable_torque(), wrench + 3);
}

double *Data(Array &array, py::ssize_t size) {
  if (array.size() != size) throw py::value_error("an array of the wrong size");
  return array.mutable_data();
}

class Bodies {
 public:
  Bodies(std::vector<std::tuple<sim::Entity, Array, Array>> links,
         std::vector<std::tuple<sim::Entity, Array, Array>> joints,
         const std::vector<std::pair<std::size_t, sim::Entity>> &pulled) {
    for (auto &[entity, pose, twist] : links) {
      links_.push_back({entity, Data(pose, 16), Data(twist, 6)});
      keep_.push_back(pose);
      keep_.push_back(twist);
    }
    for (auto &[entity, position, velocity] : joints) {
      const auto axes = position.size();
      joints_.push_back({entity, Data(position, axes), Data(velocity, axes),
                         static_cast<std::size_t>(axes)});
      keep_.push_back(position);
      keep_.push_back(velocity);
    }
    for (const auto &[row, entity] : pulled) pulled_.push_back({row, entity});
  }

  // Index of the first link, or number of links plus index of the first joint, whose motion is
  // not known; -1 if all is.
  int Read(const Manager &ecm) const {
    int index = 0;
    for (const auto &link : links_) {
      const auto *pose = ecm.Component<components::WorldPose>(link.entity);
      const auto *linear = ecm.Component<components::WorldLinearVelocity>(link.entity);
      const auto *angular = ecm.Component<components::WorldAngularVelocity>(link.entity);
      if (!pose || !linear || !angular) return index;
      WritePose(pose->Data(), link.pose);
      WriteVector(linear->Data(), link.twist);
      WriteVector(angular->Data(), link.twist + 3);
      ++index;
    }
    for (const auto &joint : joints_) {
      const auto *position = ecm.Component<components::JointPosition>(joint.entity);
      const auto *velocity = ecm.Component<components::JointVelocity>(joint.entity);
      // empty until Physics has filled them
      if (!position || !velocity || position->Data().size() != joint.axes ||
          velocity->Data().size() != joint.axes)
        return index;
      std::memcpy(joint.position, position->Data().data(), joint.axes * sizeof(double));
      std::memcpy(joint.velocity, velocity->Data().data(), joint.axes * sizeof(double));
      ++index;
    }
    return -1;
  }

  void Pull(Manager &ecm, const Array &wrenches) const {
    const std::size_t rows = wrenches.size() / 6;
    for (const auto &pulled : pulled_) {
      if (pulled.row >= rows) throw py::index_error("no wrench for a link that is pulled");
      const double *wrench = wrenches.data() + 6 * pulled.row;
      AddWrench(ecm, pulled.entity, wrench);
    }
  }

 private:
  std::vector<LinkEntry> links_;
  std::vector<JointEntry> joints_;
  std::vector<PulledEntry> pulled_;
  std::vector<py::object> keep_;
};

// Velocity of a link's origin and angular velocity, in its own axes, for the next step.
void Move(Manager &ecm, sim::Entity entity, const std::vector<double> &twist) {
  if (twist.size() != 6) throw py::value_error("a twist needs six numbers");
  const sim::Link link(entity);
  link.SetLinearVelocity(ecm, Vector(twist.data()));
  link.SetAngularVelocity(ecm, Vector(twist.data() + 3));
}

}  // namespace

PYBIND11_MODULE(cards_gazebo_bodies, module) {
  py::class_<Bodies>(module, "Bodies", py::module_local())
      .def(py::init<std::vector<std::tuple<sim::Entity, Array, Array>>,
                    std::vector<std::tuple<sim::Entity, Array, Array>>,
                    std::vector<std::pair<std::size_t, sim::Entity>>>())
      .def("read", &Bodies::Read)
      .def("pull", &Bodies::Pull);
  module.def("move", &Move);
  // raises TypeError unless this module knows Gazebo's class, i.e. has the bindings' pybind11
  module.def("probe", [](const Manager &) {});
}
