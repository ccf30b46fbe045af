#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/cluster/node.hpp>
#include <dtrain/net/http_server.hpp>

#include "common/temporary_folder.hpp"
#include "node/admission_port.hpp"

namespace dtrain::cluster {
namespace {

constexpr const char* kDocument =
    R"({"accountId": "1", "region": "r", "instanceId": "i-1", "privateIp": "127.0.0.1", "availabilityZone": "z",)"
    R"( "instanceType": "t"})";

net::HttpResponse metadata(const net::HttpRequest& request) {
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

// A head that admits every node, and then says something that no head says.
TEST(Node, LivesOnWhenItsHeadSendsWhatItCannotRead) {
  const OwnNetwork network;
  if (!network) GTEST_SKIP() << "no network of its own can be made here";
  const TemporaryFolder folder;
  const std::string secret(64, 'a');
  net::Loop loop;
  std::vector<std::shared_ptr<net::Channel>> channels;
  std::promise<void> came_again;
  net::Listener listener(loop, "127.0.0.1", "token", [&](const std::shared_ptr<net::Channel>& channel) {
    channel->listen({.on_frame = [](const std::string&) {}, .on_close = [](const std::string&) {}});
    channel->send("no JSON");
    channels.push_back(channel);
    if (channels.size() == 2) came_again.set_value();
  });
  const AdmissionPort admission(loop, "127.0.0.1", secret, [&](const Json& claim, const std::string& peer) {
    EXPECT_EQ(claim.at("document").as_string(), kDocument);
    EXPECT_EQ(peer, "127.0.0.1");
    return Json::object({{"port", std::int64_t{listener.port()}}, {"token", "token"}});
  });
  const net::HttpServer service(loop, "127.0.0.1", 0, metadata);
  const pid_t node = ::fork();  // before there are threads
  if (node == 0) {
    ::setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", ("http://127.0.0.1:" + std::to_string(service.port())).c_str(), 1);
    NodeOptions options;
    options.order.cluster = "demo";
    options.order.head = "127.0.0.1";
    options.order.admission = secret;
    options.order.login = ::getpwuid(0)->pw_name;
    options.folder = folder.path();
    run_node(options);
    ::_exit(0);
  }
  std::thread running([&] { loop.run(); });
  EXPECT_EQ(came_again.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  int status = 0;
  EXPECT_EQ(::waitpid(node, &status, WNOHANG), 0) << "the node has ended";
  ::kill(node, SIGKILL);
  ::waitpid(node, &status, 0);
  loop.stop();
  running.join();
}

}  // namespace
}  // namespace dtrain::cluster
