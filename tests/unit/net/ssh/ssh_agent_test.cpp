#include "ssh/agent_relay.hpp"
#include "ssh/sftp_packet.hpp"
#include "ssh_server.hpp"

namespace dtrain::net {
namespace {

// ssh-agent, without keys, for the length of a test.
class Agent {
 public:
  explicit Agent(const SshServer& server) : folder_(server.folder()), socket_((folder_ / "agent").string()) {
    Spawn child = spawn_of({"/usr/bin/ssh-agent", "-D", "-a", socket_});
    child.environment = own_environment();
    child.death_signal = SIGTERM;
    process_ = spawn(child);
    for (int tries = 0; tries < 6000 && !std::filesystem::exists(socket_); ++tries) std::this_thread::sleep_for(10ms);
  }
  ~Agent() {
    ::kill(process_, SIGCONT);
    ::kill(process_, SIGTERM);
    ::waitpid(process_, nullptr, 0);
  }
  const std::string& socket() const { return socket_; }
  // A key of the server's folder.
  void add(const std::string& name) const {
    const std::string line = fmt::format("SSH_AUTH_SOCK={} ssh-add -q {}/{}", socket_, folder_.string(), name);
    if (std::system(line.c_str()) != 0) throw std::runtime_error("ssh-add failed");
  }
  void freeze() const { ::kill(process_, SIGSTOP); }

 private:
  Path folder_;
  std::string socket_;
  pid_t process_;
};

class SshAgent : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_SSHD();
    server_.emplace();
    agent_.emplace(*server_);
  }

  Path file(const std::string& name) const { return server_->folder() / name; }
  // Options of a user whose only keys are those that the configuration names.
  SshOptions options(const std::string& config = "") const {
    SshOptions options = server_->options();
    options.identities.clear();
    options.agent_socket = agent_->socket();
    options.config = file("config");
    write_file_atomic(options.config, config);
    return options;
  }
  std::string connecting(const SshOptions& options) const {
    return failure_of([&] { SshSession::connect(server_->target(), options); });
  }
  void lock(const std::string& name) const {
    const std::string line = fmt::format("ssh-keygen -q -p -P '' -N secret -f {} >/dev/null", file(name).string());
    if (std::system(line.c_str()) != 0) throw std::runtime_error("ssh-keygen failed");
  }

  std::optional<SshServer> server_;
  std::optional<Agent> agent_;
};

TEST_F(SshAgent, IsAsked) {
  const SshOptions with = options();
  EXPECT_NE(connecting(with), "");
  agent_->add("id");
  EXPECT_EQ(connecting(with), "");
}

TEST_F(SshAgent, ThatHangsLeavesTimeForKeys) {
  agent_->add("id");
  agent_->freeze();
  SshOptions with = options();
  with.identities = {file("id")};
  with.connect_deadline = 16s;
  EXPECT_EQ(connecting(with), "");
}

// sshd ends a connection after six keys.
TEST_F(SshAgent, OffersTheNamedKeyBeforeAllOthers) {
  for (int i = 0; i < 7; ++i) {
    const std::string name = fmt::format("other{}", i);
    server_->make_key(name);
    agent_->add(name);
  }
  agent_->add("id");
  const std::string failure = connecting(options());
  EXPECT_TRUE(contains(failure, "Too many authentication failures")) << failure;
  EXPECT_TRUE(contains(failure, "IdentityFile")) << failure;
  EXPECT_THROW(SshSession::connect(server_->target(), options()), SshLoginRefused);
  std::filesystem::remove(file("id"));
  EXPECT_EQ(connecting(options(fmt::format("IdentityFile {}\n", file("id").string()))), "");
  EXPECT_EQ(connecting(options(fmt::format("IdentityFile {}\n", file("id.pub").string()))), "");
}

TEST_F(SshAgent, OffersNamedKeysAloneWithIdentitiesOnly) {
  agent_->add("id");
  lock("id");
  server_->make_key("other");
  const auto only = [](const Path& key) { return fmt::format("IdentitiesOnly yes\nIdentityFile {}\n", key.string()); };
  EXPECT_EQ(connecting(options(only(file("id")))), "");
  EXPECT_EQ(connecting(options(only(file("id.pub")))), "");
  std::filesystem::remove(file("id.pub"));  // the locked file tells its public half too
  EXPECT_EQ(connecting(options(only(file("id")))), "");
  const std::string failure = connecting(options(only(file("other"))));
  EXPECT_TRUE(contains(failure, "tried the agent (IdentitiesOnly), ")) << failure;
}

TEST_F(SshAgent, OrAFileWithoutAPassphraseLogsInWithAPublicKey) {
  const std::string key = read_file(file("id.pub"));
  SshOptions with = options();
  with.identities = {file("id")};
  EXPECT_TRUE(can_log_in_with(key, server_->target(), with));
  lock("id");
  EXPECT_FALSE(can_log_in_with(key, server_->target(), with));
  server_->make_key("other");
  with.identities.push_back(file("other"));
  EXPECT_FALSE(can_log_in_with(key, server_->target(), with));
  with.agent_socket = "/none";
  EXPECT_FALSE(can_log_in_with(key, server_->target(), with));
}

TEST_F(SshAgent, LogsInWithAPublicKeyThatItHolds) {
  const std::string key = read_file(file("id.pub"));
  agent_->add("id");
  std::filesystem::remove(file("id"));
  EXPECT_TRUE(can_log_in_with(key, server_->target(), options()));
  EXPECT_FALSE(can_log_in_with(key, server_->target(), options("IdentitiesOnly yes\nIdentityFile /none\n")));
  EXPECT_FALSE(can_log_in_with(key, server_->target(), options("IdentityAgent none\n")));
}

std::string identities(const std::vector<std::string>& keys) {
  ssh::Packer answer;
  answer.byte(12).u32(static_cast<std::uint32_t>(keys.size()));
  for (const std::string& key : keys) answer.text(key).text("of " + key);
  return answer.bytes();
}

TEST(SshAgentKeys, ComeInTheOrderGiven) {
  const std::string answer = identities({"a", "b", "c", "d"});
  EXPECT_EQ(ssh::in_order(answer, {}), answer);
  EXPECT_EQ(ssh::in_order(answer, {.first = {"d", "none", "b"}}), identities({"d", "b", "a", "c"}));
  EXPECT_EQ(ssh::in_order(answer, {.first = {"d", "none", "b"}, .no_others = true}), identities({"d", "b"}));
  EXPECT_EQ(ssh::in_order(answer, {.first = {}, .no_others = true}), identities({}));
  for (std::size_t size = 0; size < answer.size(); ++size) {
    EXPECT_THROW(ssh::in_order(answer.substr(0, size), {}), RemoteError) << size;
  }
}

}  // namespace
}  // namespace dtrain::net
