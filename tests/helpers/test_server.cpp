#include "common/test_server.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

namespace dtrain::net {

TestServer::TestServer(std::string script) {
  const std::string path = DTRAIN_TESTS_DIR "/net/" + script;
  int in[2], out[2];
  if (::pipe(in) != 0 || ::pipe(out) != 0) throw std::runtime_error("no pipe");
  process_ = ::fork();
  if (process_ == 0) {
    ::dup2(in[0], 0);
    ::dup2(out[1], 1);
    for (int fd : {in[0], in[1], out[0], out[1]}) ::close(fd);
    ::execlp("python3", "python3", path.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  stdin_ = FileDescriptor(in[1]);
  stdout_ = FileDescriptor(out[0]);
  std::string line(16, '\0');
  const ssize_t got = ::read(stdout_.get(), line.data(), line.size());
  if (got <= 0) throw std::runtime_error(path + " does not start; is python3 installed?");
  port_ = std::stoi(line);
}

TestServer::~TestServer() {
  stdin_ = FileDescriptor();
  ::waitpid(process_, nullptr, 0);
}

std::string TestServer::url(std::string_view path) const { return fmt::format("http://127.0.0.1:{}/{}", port_, path); }

std::string server_content() {
  std::string content;
  for (int i = 0; i < 100'000; ++i) content += static_cast<char>(i * 7 % 251);
  return content;
}

}  // namespace dtrain::net
