// Ports of one address that are free now, and that neither the kernel nor another job of dtrain gives away while this
// lives. They are not bound, so any program can bind them, whatever options it sets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::external {

class LeasedPorts {
 public:
  // Throws Error when this machine has no such address, or no port left.
  LeasedPorts(const std::string& address, std::size_t count);
  const std::vector<std::uint16_t>& numbers() const { return numbers_; }

 private:
  std::vector<FileDescriptor> locks_;
  std::vector<std::uint16_t> numbers_;
};

}  // namespace dtrain::external
