#include <algorithm>
#include <sstream>
#include <tuple>

#include <dtrain/base/text.hpp>
#include <dtrain/net/socket_address.hpp>

#include "server/sockets.hpp"
#include "ssh_server.hpp"

namespace dtrain::net {
namespace {

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
  std::string command;
  try {
    SshSession::connect(server.target(), options);
  } catch (const SshHostKeyChanged& error) {
    command = error.forget_command();
  }
  EXPECT_TRUE(contains(failure, "forget the old one: " + command)) << failure;
  ASSERT_EQ(std::system((command + " >/dev/null 2>&1").c_str()), 0) << command;
  EXPECT_EQ(failure_of([&] { SshSession::connect(server.target(), options); }), "");
}

TEST_F(SshConnect, AddsAHostKeyBehindALastLineWithoutItsEnd) {
  const SshServer server;
  const SshOptions options = server.options();
  const std::string other = "other.example " + std::string(trim(read_file(server.folder() / "id.pub")));
  write_file_atomic(options.known_hosts, other);
  SshSession::connect(server.target(), options);
  const std::vector<std::string> lines = split(read_file(options.known_hosts), '\n');
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], other);
  EXPECT_TRUE(lines[2].empty());
  EXPECT_EQ(failure_of([&] { SshSession::connect(server.target(), options); }), "");
}

TEST_F(SshConnect, RefusesAnUnknownHostUnlessItMayAcceptIt) {
  const SshServer server;
  SshOptions options = server.options();
  options.new_host_keys = NewHostKeys::refuse;
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
  options.global_known_hosts = {std::exchange(options.known_hosts, Path())};
  options.new_host_keys = NewHostKeys::refuse;
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

// A stopped sshd is as silent as a host that vanished; the host before it goes on to acknowledge.
TEST_F(SshConnect, NoticesThatAHostBehindAnotherOneFallsSilent) {
  const SshServer near, far;
  std::filesystem::copy_file(near.folder() / "authorized", far.folder() / "authorized",
                             std::filesystem::copy_options::overwrite_existing);
  SshOptions options = near.options();
  options.silence = 500ms;
  options.config = near.folder() / "config";
  write_file_atomic(options.config, fmt::format("Host near\n HostName 127.0.0.1\n Port {}\n"
                                                "Host far\n HostName 127.0.0.1\n Port {}\n ProxyJump near\n",
                                                near.target().port, far.target().port));
  SshSession session = SshSession::connect({"far", "", 0}, options);
  EXPECT_TRUE(session.run({.shell = "sleep 5"}).ok()) << "a program that says nothing is not lost";
  pid_t sshd = 0, program = 0;
  SshCommand command{.shell = "echo $PPID $$; exec sleep 98765", .deadline = 30s};
  command.on_output = [&](std::string_view piece) {
    std::istringstream(std::string(piece)) >> sshd >> program;
    if (sshd != 0) ::kill(sshd, SIGSTOP);
  };
  const std::string failure = failure_of([&] { std::ignore = session.run(command); });
  for (const pid_t left : {sshd, program}) {
    if (left != 0) ::kill(left, SIGKILL);
  }
  EXPECT_TRUE(contains(failure, "far: the connection was lost while a command ran: nothing came for 3 s")) << failure;
}

TEST_F(SshConnect, HonoursKeysOfAllFilesOfTheUserAndOfTheMachine) {
  const SshServer server;
  SshOptions options = server.options();
  SshSession::connect(server.target(), options);
  const Path known = options.known_hosts;
  for (auto* files : {&options.user_known_hosts, &options.global_known_hosts}) {
    SshOptions job = server.options();
    job.known_hosts = server.folder() / "of-the-job";
    job.new_host_keys = NewHostKeys::refuse;
    job.*(files == &options.user_known_hosts ? &SshOptions::user_known_hosts : &SshOptions::global_known_hosts) = {
        server.folder() / "none", known};
    EXPECT_EQ(failure_of([&] { SshSession::connect(server.target(), job); }), "");
    EXPECT_FALSE(std::filesystem::exists(job.known_hosts));
  }
}

TEST_F(SshConnect, RefusesARevokedKeyAndOneThatDiffersInAnyFile) {
  SshServer server;
  SshOptions options = server.options();
  SshSession::connect(server.target(), options);
  const std::string line = read_file(options.known_hosts);
  options.known_hosts = server.folder() / "new";
  options.global_known_hosts = {server.folder() / "machine"};
  write_file_atomic(options.global_known_hosts[0], "@revoked " + line);
  EXPECT_TRUE(contains(failure_of([&] { SshSession::connect(server.target(), options); }), "is revoked"));
  write_file_atomic(options.global_known_hosts[0], line);
  server.stop();
  server.make_key("host");
  server.start();
  EXPECT_TRUE(contains(failure_of([&] { SshSession::connect(server.target(), options); }), "is not the one in"));
}

TEST_F(SshConnect, FollowsStrictHostKeyCheckingAndFilesOfTheConfiguration) {
  const SshServer server;
  SshOptions options = server.options();
  options.config = server.folder() / "config";
  const auto with = [&](NewHostKeys rule, const std::string& config) {
    options.new_host_keys = rule;
    write_file_atomic(options.config, config);
    std::filesystem::remove(options.known_hosts);
    return failure_of([&] { SshSession::connect(server.target(), options); });
  };
  EXPECT_EQ(with(NewHostKeys::accept_unless_strict, "StrictHostKeyChecking ask\n"), "");
  EXPECT_TRUE(contains(with(NewHostKeys::accept_unless_strict, "StrictHostKeyChecking yes\n"), "is not in"));
  EXPECT_TRUE(contains(with(NewHostKeys::refuse, "\n"), "is not in"));
  EXPECT_EQ(with(NewHostKeys::refuse, "StrictHostKeyChecking accept-new\n"), "");
  const Path mine = server.folder() / "mine";
  options.known_hosts.clear();
  options.user_known_hosts = {server.folder() / "usual"};
  EXPECT_EQ(with(NewHostKeys::refuse, fmt::format("StrictHostKeyChecking no\nUserKnownHostsFile {}\n", mine.string())),
            "");
  EXPECT_TRUE(std::filesystem::exists(mine));
  EXPECT_FALSE(std::filesystem::exists(server.folder() / "usual"));
}

TEST_F(SshConnect, KnowsAHostByItsAlias) {
  SshServer server;
  SshOptions options = server.options();
  options.config = server.folder() / "config";
  write_file_atomic(options.config, "HostKeyAlias farm\n");
  SshSession::connect(server.target(), options);
  EXPECT_TRUE(read_file(options.known_hosts).starts_with("farm "));
  options.new_host_keys = NewHostKeys::refuse;
  EXPECT_EQ(failure_of([&] { SshSession::connect({"localhost", "", server.target().port}, options); }), "");
}

// A machine that takes over the address of another one has another name, and so another key.
TEST_F(SshConnect, KnowsAHostByTheAliasOfItsTarget) {
  SshServer server;
  SshOptions options = server.options();
  options.config = server.folder() / "config";
  write_file_atomic(options.config, "HostKeyAlias farm\n");
  SshTarget target = server.target();
  target.host_key_alias = "i-0001";
  SshSession::connect(target, options);
  EXPECT_TRUE(read_file(options.known_hosts).starts_with("i-0001 "));
  server.stop();
  server.make_key("host");
  server.start();
  EXPECT_THROW(SshSession::connect(target, options), SshHostKeyChanged);
  target.host_key_alias = "i-0002";
  EXPECT_EQ(failure_of([&] { SshSession::connect(target, options); }), "");
}

TEST_F(SshConnect, GoesThroughAProxyCommandAndEndsIt) {
  const SshServer server;
  SshOptions options = server.options();
  options.config = server.folder() / "config";
  write_file_atomic(
      server.folder() / "proxy",
      fmt::format("echo $$ >{}/pid\nexec 3<>/dev/tcp/$1/$2\ncat <&3 &\ncat >&3\n", server.folder().string()));
  write_file_atomic(options.config,
                    fmt::format("Host far\n HostName 127.0.0.1\n Port {}\n ProxyCommand bash {}/proxy %h %p\n",
                                server.target().port, server.folder().string()));
  {
    SshSession session = SshSession::connect({"far", "", 0}, options);
    EXPECT_TRUE(session.run({.shell = "exit 0"}).ok());
    session.put_text(std::string(3 << 20, 'x'), (server.folder() / "large").string(), 0644);
    EXPECT_EQ(session.local_address(), "");
  }
  EXPECT_EQ(std::filesystem::file_size(server.folder() / "large"), std::size_t{3 << 20});
  const auto process = parse_integer(trim(read_file(server.folder() / "pid")));
  ASSERT_TRUE(process);
  EXPECT_NE(::kill(static_cast<pid_t>(*process), 0), 0);
  options.connect_deadline = 3s;
  write_file_atomic(options.config, "Host far\n ProxyCommand false\n");
  EXPECT_NE(failure_of([&] { SshSession::connect({"far", "", 0}, options); }), "");
}

TEST_F(SshConnect, OffersACertificateWithItsKey) {
  SshServer server("TrustedUserCAKeys " + (Path(testing::TempDir()) / "dtrain-ca.pub").string() + "\n");
  server.make_key("ca");
  std::filesystem::copy_file(server.folder() / "ca.pub", Path(testing::TempDir()) / "dtrain-ca.pub",
                             std::filesystem::copy_options::overwrite_existing);
  write_file_atomic(server.folder() / "authorized", "");
  SshOptions options = server.options();
  EXPECT_TRUE(contains(failure_of([&] { SshSession::connect(server.target(), options); }), "no key opens it"));
  const std::string sign =
      fmt::format("cd {} && ssh-keygen -q -s ca -I test -n $(id -un) id.pub && mv id-cert.pub signed.pub",
                  server.folder().string());
  ASSERT_EQ(std::system(sign.c_str()), 0);
  options.config = server.folder() / "config";
  write_file_atomic(options.config, fmt::format("CertificateFile {}/signed.pub\n", server.folder().string()));
  EXPECT_EQ(failure_of([&] { SshSession::connect(server.target(), options); }), "");
}

TEST_F(SshConnect, UsesTheAlgorithmsOfTheConfiguration) {
  const SshServer server("Ciphers aes256-ctr\n");
  SshOptions options = server.options();
  options.config = server.folder() / "config";
  write_file_atomic(options.config, "Ciphers aes128-ctr\n");
  EXPECT_NE(failure_of([&] { SshSession::connect(server.target(), options); }), "");
  write_file_atomic(options.config, "Ciphers aes128-ctr,aes256-ctr\n");
  EXPECT_EQ(failure_of([&] { SshSession::connect(server.target(), options); }), "");
}

TEST_F(SshConnect, TriesAgainWhenSshdTurnsItAway) {
  const SshServer server("MaxStartups 3:50:5\nLogLevel VERBOSE\n");
  SshOptions options = server.options();
  options.connect_deadline = 300s;
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
  const SshTarget target{"127.0.0.1", "", SocketAddress::own_of(silent.get()).port()};
  const std::string failure = failure_of([&] { SshSession::connect(target, options); });
  EXPECT_TRUE(contains(failure, "no answer in time")) << failure;
  EXPECT_LT(std::chrono::steady_clock::now() - before, SshOptions().connect_deadline);
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
  EXPECT_THROW(SshSession::connect({"127.0.0.1", "", SocketAddress::own_of(silent.get()).port()}, options), Stopped);
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
