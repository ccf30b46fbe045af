// A ProxyCommand of ssh_config(5): a program whose standard input and output carry the bytes of a connection.
#pragma once

#include <sys/types.h>

#include <string>

#include <dtrain/base/files.hpp>

namespace dtrain::net::ssh {

class ProxyProcess {
 public:
  // Runs the line with /bin/sh. Error: it does not start. One that ends closes the socket, as a lost network does.
  explicit ProxyProcess(const std::string& line);
  ~ProxyProcess();  // kills it
  ProxyProcess(const ProxyProcess&) = delete;

  FileDescriptor take_socket() { return std::move(near_end_); }

 private:
  FileDescriptor near_end_;
  pid_t process_ = 0;
};

}  // namespace dtrain::net::ssh
