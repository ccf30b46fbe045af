// Ports of one address that are free now and that the kernel gives to nobody else while this lives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::foreign {

class LeasedPorts {
 public:
  // Throws Error when this machine has no such address, or no port left.
  LeasedPorts(const std::string& address, std::size_t count);
  const std::vector<std::uint16_t>& numbers() const { return numbers_; }
  // For the program to bind them. The kernel chooses ports at random, so for a moment nobody else gets these.
  void release() { sockets_.clear(); }

 private:
  std::vector<FileDescriptor> sockets_;
  std::vector<std::uint16_t> numbers_;
};

}  // namespace dtrain::foreign
