#include <algorithm>

#include <dtrain/base/text.hpp>

#include "server/sockets.hpp"
#include "ssh_server.hpp"

namespace dtrain::net {
namespace {

// What the message of the RemoteError says that `work` throws, with its hint; "" when it throws none.
template <typename Work>
std::string failure_of(Work work) {
  try {
    work();
  } catch (const RemoteError& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator folder("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(folder), end(folder)));
}

class SshConnect : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_SSHD(); }
};

TEST_F(SshConnect, AcceptsANewHostKeyOnceAndRefusesAnother) {
  SshServer server;
  SshOptions options = server.options();
  SshSession::connect(server.target(), options);
  EXPECT_EQ(split(read_file(options.known_hosts), '\n').size(), 2u);  // one line and its end
  SshSession::connect(server.target(), options);
  EXPECT_EQ(split(read_file(options.known_hosts), '\n').size(), 2u);

  server.stop();
  server.make_key("host");
  server.start();
  const std::string failure = failure_of([&] { SshSession::connect(server.target(), options); });
  EXPECT_TRUE(contains(failure, "host key is not the one in")) << failure;
  const std::string command = failure.substr(failure.find("ssh-keygen -R"));
  ASSERT_EQ(std::system((command + " >/dev/null 2>&1").c_str()), 0) << command;
  EXPECT_EQ(failure_of([&] { SshSession::connect(server.target(), options); }), "");
}

TEST_F(SshConnect, RefusesAnUnknownHostUnlessItMayAcceptIt) {
  const SshServer server;
  SshOptions options = server.options();
  options.accept_new = false;
  const std::string failure = failure_of([&] { SshSession::connect(server.target(), options); });
  EXPECT_TRUE(contains(failure, "SHA256:")) << failure;
  const std::string command = failure.substr(failure.find("ssh-keyscan"));
  ASSERT_EQ(std::system(("(" + command + ") 2>/dev/null").c_str()), 0) << command;
  EXPECT_EQ(failure_of([&] { SshSession::connect(server.target(), options); }), "");
}

TEST_F(SshConnect, ReadsHostKeysFromASecondFileAndFromOddPaths) {
  const SshServer server;
  SshOptions options = server.options();
  options.known_hosts = server.folder() / "100% known" / "it's";
  SshSession::connect(server.target(), options);
  options.more_known_hosts = std::exchange(options.known_hosts, Path());
  options.accept_new = false;
  EXPECT_EQ(failure_of([&] { SshSession::connect(server.target(), options); }), "");
}

TEST_F(SshConnect, SaysWhichKeysItTried) {
  SshServer server;
  server.make_key("other");
  SshOptions options = server.options();
  options.identities = {server.folder() / "missing", server.folder() / "other", server.folder() / "host.pub"};
  const std::string failure = failure_of([&] { SshSession::connect(server.target(), options); });
  EXPECT_TRUE(contains(failure, "no key opens it")) << failure;
  EXPECT_TRUE(contains(failure, "/other")) << failure;
  EXPECT_FALSE(contains(failure, "/missing")) << failure;
  EXPECT_TRUE(contains(failure, "host.pub (cannot be read")) << failure;
}

// ssh-agent with the server's key for the length of a test.
class Agent {
 public:
  explicit Agent(const SshServer& server) : socket_((server.folder() / "agent").string()) {
    process_ = spawn_of_agent();
    for (int tries = 0; tries < 200 && !std::filesystem::exists(socket_); ++tries) std::this_thread::sleep_for(10ms);
    const std::string add = fmt::format("SSH_AUTH_SOCK={} ssh-add -q {}/id", socket_, server.folder().string());
    if (std::system(add.c_str()) != 0) throw std::runtime_error("ssh-add failed");
  }
  ~Agent() {
    ::kill(process_, SIGCONT);
    ::kill(process_, SIGTERM);
    ::waitpid(process_, nullptr, 0);
  }
  const std::string& socket() const { return socket_; }
  void freeze() { ::kill(process_, SIGSTOP); }

 private:
  pid_t spawn_of_agent() {
    Spawn child = spawn_of({"/usr/bin/ssh-agent", "-D", "-a", socket_});
    child.environment = own_environment();
    child.death_signal = SIGTERM;
    return spawn(child);
  }
  std::string socket_;
  pid_t process_;
};

TEST_F(SshConnect, AsksTheAgent) {
  const SshServer server;
  const Agent agent(server);
  SshOptions options = server.options();
  options.identities.clear();
  EXPECT_NE(failure_of([&] { SshSession::connect(server.target(), options); }), "");
  options.agent_socket = agent.socket();
  EXPECT_EQ(failure_of([&] { SshSession::connect(server.target(), options); }), "");
}

TEST_F(SshConnect, GoesOnWithoutAnAgentThatHangs) {
  const SshServer server;
  Agent agent(server);
  SshOptions options = server.options();
  options.agent_socket = agent.socket();
  agent.freeze();
  options.connect_deadline = 6s;
  EXPECT_EQ(failure_of([&] { SshSession::connect(server.target(), options); }), "");
}

TEST_F(SshConnect, FollowsTheConfigurationOverTwoHops) {
  const SshServer near, middle, far;
  std::filesystem::copy_file(near.folder() / "authorized", middle.folder() / "authorized",
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::copy_file(near.folder() / "authorized", far.folder() / "authorized",
                             std::filesystem::copy_options::overwrite_existing);
  SshOptions options = near.options();
  options.config = near.folder() / "config";
  write_file_atomic(options.config,
                    fmt::format("Host near\n HostName 127.0.0.1\n Port {}\nHost middle\n HostName localhost\n Port {}\n"
                                " ProxyJump near\nHost far\n HostName 127.0.0.1\n Port {}\n ProxyJump middle\n",
                                near.target().port, middle.target().port, far.target().port));
  std::string output;
  {
    SshSession session = SshSession::connect({"far", "", 0}, options);
    SshCommand command{.shell = "echo $HOME"};
    command.on_output = [&](std::string_view piece) { output += piece; };
    EXPECT_TRUE(session.run(command).ok());
    session.put_text(std::string(3 << 20, 'x'), (far.folder() / "large").string(), 0644);
  }
  EXPECT_EQ(output, far.folder().string() + "\n");
  EXPECT_EQ(std::filesystem::file_size(far.folder() / "large"), std::size_t{3 << 20});
  options.config = near.folder() / "circle";
  write_file_atomic(options.config, "Host a\n ProxyJump b\nHost b\n ProxyJump a\n");
  EXPECT_THROW(SshSession::connect({"a", "", 0}, options), UsageError);
}

TEST_F(SshConnect, TriesAgainWhenSshdTurnsItAway) {
  const SshServer server("MaxStartups 3:50:5\nLogLevel VERBOSE\n");
  SshOptions options = server.options();
  options.connect_deadline = 60s;
  std::atomic<int> connected = 0;
  {
    std::vector<std::jthread> crowd;
    for (int i = 0; i < 24; ++i) {
      crowd.emplace_back([&] {
        SshSession::connect(server.target(), options);
        ++connected;
      });
    }
  }
  EXPECT_EQ(connected, 24);
  EXPECT_TRUE(contains(server.log(), "drop connection")) << "the crowd was too small to be turned away";
}

TEST_F(SshConnect, GivesUpOnAServerThatAcceptsAndSaysNothing) {
  const FileDescriptor silent = listen_on("127.0.0.1");
  SshOptions options;
  options.connect_deadline = 400ms;
  const auto before = std::chrono::steady_clock::now();
  const SshTarget target{"127.0.0.1", "", local_name(silent.get()).port};
  const std::string failure = failure_of([&] { SshSession::connect(target, options); });
  EXPECT_TRUE(contains(failure, "no answer in time")) << failure;
  EXPECT_LT(std::chrono::steady_clock::now() - before, 5s);
}

TEST_F(SshConnect, StopsWaitingWhenAsked) {
  const FileDescriptor silent = listen_on("127.0.0.1");
  std::stop_source stop;
  SshOptions options;
  options.connect_deadline = 60s;
  options.stop = stop.get_token();
  const std::jthread other([&] {
    std::this_thread::sleep_for(200ms);
    stop.request_stop();
  });
  EXPECT_THROW(SshSession::connect({"127.0.0.1", "", local_name(silent.get()).port}, options), Stopped);
}

TEST_F(SshConnect, SaysWhyAHostCannotBeReached) {
  const SshOptions options;
  const std::string refused = failure_of([&] { SshSession::connect({"127.0.0.1", "", free_port()}, options); });
  EXPECT_TRUE(contains(refused, "Connection refused")) << refused;
  const std::string unknown = failure_of([&] { SshSession::connect({"no-such-host.invalid", "", 0}, options); });
  EXPECT_TRUE(contains(unknown, "cannot find the address of 'no-such-host.invalid'")) << unknown;
}

TEST_F(SshConnect, ClosesEverythingItOpens) {
  const SshServer server;
  SshSession::connect(server.target(), server.options());
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 3; ++i) {
    SshSession session = SshSession::connect(server.target(), server.options());
    EXPECT_TRUE(session.run({.shell = "exit 0"}).ok());
    session.stat(".");
    SshOptions strange = server.options();
    strange.known_hosts.clear();
    failure_of([&] { SshSession::connect(server.target(), strange); });
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace dtrain::net
