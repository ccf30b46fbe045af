// One machine for a head and its nodes: a network of its own, and what EC2 says of the instance.
#pragma once

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <dtrain/base/files.hpp>
#include <dtrain/net/http_server.hpp>

namespace dtrain::cluster {

inline constexpr const char* kDocument =
    R"({"accountId": "1", "region": "r", "instanceId": "i-1", "privateIp": "127.0.0.1", "availabilityZone": "z",)"
    R"( "instanceType": "t"})";

// The service of EC2 that says so.
inline net::HttpResponse metadata(const net::HttpRequest& request) {
  if (request.method == "PUT") return {.body = "a token"};
  if (request.path.ends_with("/document")) return {.body = kDocument};
  return {.status = 404};
}

// A network with a loopback of its own, where the port of admission is free; not there without root's rights.
class OwnNetwork {
 public:
  OwnNetwork() : before_(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) {
    made_ = before_ && ::unshare(CLONE_NEWNET) == 0;
    const FileDescriptor any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq loopback{};
    loopback.ifr_name[0] = 'l', loopback.ifr_name[1] = 'o';
    loopback.ifr_flags = IFF_UP;
    made_ = made_ && ::ioctl(any.get(), SIOCSIFFLAGS, &loopback) == 0;
  }
  ~OwnNetwork() {
    if (before_) ::setns(before_.get(), CLONE_NEWNET);
  }
  explicit operator bool() const { return made_; }

 private:
  const FileDescriptor before_;
  bool made_ = false;
};

}  // namespace dtrain::cluster
