// Stands in for Gazebo's GUI: offers /marker_array and prints every request, serialised, in hex.
#include <gz/msgs/boolean.pb.h>
#include <gz/msgs/marker_v.pb.h>

#include <functional>
#include <gz/transport/Node.hh>
#include <iomanip>
#include <iostream>
#include <mutex>

int main() {
  gz::transport::Node node;
  std::mutex output;  // requests come in threads of their own, the first before "ready"
  std::function<bool(const gz::msgs::Marker_V &, gz::msgs::Boolean &)> take =
      [&output](const gz::msgs::Marker_V &request, gz::msgs::Boolean &answer) {
        std::lock_guard lock(output);
        for (unsigned char byte : request.SerializeAsString())
          std::cout << std::hex << std::setw(2) << std::setfill('0') << int(byte);
        std::cout << std::endl;
        answer.set_data(true);
        return true;
      };
  {
    std::lock_guard lock(output);
    if (!node.Advertise("/marker_array", take)) return 1;
    std::cout << "ready" << std::endl;
  }
  std::cin.get();  // until the test closes our input
}
