// A listening port for a thread that serves the ranks until end() is called.
#pragma once

#include <cstdint>
#include <string>

#include <dtrain/base/files.hpp>

namespace dtrain::external {

class OwnPort {
 public:
  explicit OwnPort(const std::string& address);  // throws Error
  std::uint16_t number() const { return number_; }
  int listener() const { return listener_.get(); }
  // Readable after end(), which any thread may call.
  int ended() const { return ended_.get(); }
  void end() { end_ = FileDescriptor(); }

 private:
  FileDescriptor listener_, end_, ended_;
  std::uint16_t number_ = 0;
};

}  // namespace dtrain::external
