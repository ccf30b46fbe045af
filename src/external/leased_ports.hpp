// Ports of one address that are free, and that neither the kernel nor another job of dtrain assigns while this object
// lives. They are not bound, so a program can bind them with any options.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::external {

class LeasedPorts {
 public:
  // Throws Error when this machine has no such address, or no free port.
  LeasedPorts(const std::string& address, std::size_t count);
  const std::vector<std::uint16_t>& numbers() const { return numbers_; }

 private:
  std::vector<FileDescriptor> locks_;
  std::vector<std::uint16_t> numbers_;
};

}  // namespace dtrain::external
