#include "doctor_agent.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include <dtrain/base/files.hpp>

namespace dtrain::doctor {
namespace {

// From draft-ietf-sshm-ssh-agent: a length of four bytes, a type of one byte; in the answer a count of four bytes
// follows.
constexpr std::array<unsigned char, 5> kWhichKeys = {0, 0, 0, 1, 11};
constexpr unsigned char kKeys = 12;
constexpr std::size_t kHead = 9;
constexpr timeval kPatience{.tv_sec = 2, .tv_usec = 0};

FileDescriptor connected(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) return {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  return socket;
}

}  // namespace

std::optional<int> keys_of_agent(const std::string& socket_path) {
  const FileDescriptor socket = connected(socket_path);
  if (!socket) return std::nullopt;
  if (::send(socket.get(), kWhichKeys.data(), kWhichKeys.size(), MSG_NOSIGNAL) != ssize_t{kWhichKeys.size()})
    return std::nullopt;
  std::array<unsigned char, kHead> head{};
  if (::recv(socket.get(), head.data(), head.size(), MSG_WAITALL) != ssize_t{kHead} || head[4] != kKeys)
    return std::nullopt;
  return head[5] << 24 | head[6] << 16 | head[7] << 8 | head[8];
}

}  // namespace dtrain::doctor
