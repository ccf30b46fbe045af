// A server of tests/net as a child process for the length of one test suite.
#pragma once

#include <cstdint>
#include <string>

#include <dtrain/base/files.hpp>

namespace dtrain::net {

class TestServer {
 public:
  explicit TestServer(std::string script = "server.py");  // starts it and waits for its port
  ~TestServer();                                          // ends it
  std::string url(std::string_view path) const;

 private:
  int process_ = 0;
  int port_ = 0;
  FileDescriptor stdin_, stdout_;  // the server ends when its stdin closes
};

// The 100,000 bytes that the server sends.
std::string server_content();

}  // namespace dtrain::net
