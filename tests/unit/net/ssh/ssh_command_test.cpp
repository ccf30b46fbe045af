#include <random>
#include <tuple>

#include "ssh_server.hpp"

namespace dtrain::net {
namespace {

bool ends_soon(pid_t process) {
  for (int tries = 0; tries < 2400 && ::kill(process, 0) == 0; ++tries) std::this_thread::sleep_for(25ms);
  return ::kill(process, 0) != 0;
}

class SshCommands : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!sshd_is_missing()) server_ = std::make_unique<SshServer>();
  }
  static void TearDownTestSuite() { server_ = nullptr; }
  void SetUp() override {
    SKIP_WITHOUT_SSHD();
    session_.emplace(server().connect());
  }

  static SshServer& server() { return *server_; }
  SshExit run(SshCommand command) {
    command.on_output = [this](std::string_view piece) { output_ += piece; };
    command.on_error = [this](std::string_view piece) { error_ += piece; };
    return session().run(command);
  }

  SshSession& session() { return *session_; }
  std::string output_, error_;

 private:
  std::optional<SshSession> session_;
  inline static std::unique_ptr<SshServer> server_;
};

TEST_F(SshCommands, TellOutputErrorsAndExitCodeApart) {
  const SshExit exit = run({.shell = "echo out; echo err >&2; exit 7"});
  EXPECT_EQ(exit.code, 7);
  EXPECT_EQ(output_, "out\n");
  EXPECT_EQ(error_, "err\n");
  EXPECT_EQ(session().local_address(), "127.0.0.1");
}

TEST_F(SshCommands, NameTheSignalThatEndedTheProgram) {
  const SshExit exit = run({.argv = {"sh", "-c", "kill -KILL $$"}});
  EXPECT_EQ(exit.signal, "KILL");
  EXPECT_FALSE(exit.ok());
}

TEST_F(SshCommands, TakeAllOfTheInputAndItsEnd) {
  std::string input(3 << 20, 'x');
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<char>(i * 7 % 256);
  EXPECT_TRUE(run({.argv = {"cat"}, .input = input}).ok());
  EXPECT_TRUE(output_ == input) << output_.size();
}

TEST_F(SshCommands, RunSeveralOneAfterAnother) {
  for (int i = 0; i < 20; ++i) EXPECT_EQ(run({.shell = fmt::format("exit {}", i)}).code, i);
}

// Words that have broken others' quoting, then random ones: all bytes but NUL.
TEST_F(SshCommands, HandOverArgumentsAndEnvironmentByteForByte) {
  std::mt19937 random(1);
  std::vector<std::string> words = {
      "",      " ",     "a b",      "'",   "\"",   "\\",   "$HOME",    "`id`",
      "$(id)", "\n",    "a\n\nb\n", "-n",  "--",   "*",    "?",        "[a]",
      "~",     "~root", "#x",       "!!",  "&",    ";",    "|",        "<",
      ">",     "=",     "a=b",      "\t",  "\r\n", "\x01", "\xff\xfe", "\xc3\xa4\xe2\x82\xac",
      "%s",    "{a,b}", "'\\''",    "exec"};
  for (int i = 0; i < 200; ++i) {
    std::string word(random() % 12, ' ');
    for (char& c : word) c = static_cast<char>(random() % 255 + 1);
    words.push_back(word);
  }
  std::string expected;
  SshCommand command{.argv = {"printf", "%s\\0"}};
  for (const std::string& word : words) {
    command.argv.push_back(word);
    expected += word + '\0';
  }
  EXPECT_TRUE(run(command).ok()) << error_;
  EXPECT_TRUE(output_ == expected) << output_.size() << " of " << expected.size();

  output_.clear();
  SshCommand show{.argv = {"env", "-0"}};
  for (std::size_t i = 0; i < words.size(); ++i) show.environment.push_back(fmt::format("W{}={}", i, words[i]));
  EXPECT_TRUE(run(show).ok()) << error_;
  for (const std::string& variable : show.environment) {
    EXPECT_NE(('\0' + output_).find('\0' + variable + '\0'), std::string::npos) << variable;
  }
}

TEST_F(SshCommands, RunInTheFolderThatIsAskedFor) {
  const Path folder = server().folder() / "a folder's name\n";
  std::filesystem::create_directories(folder);
  EXPECT_TRUE(run({.argv = {"pwd"}, .folder = folder}).ok());
  EXPECT_EQ(output_, folder.string() + "\n");
}

TEST_F(SshCommands, AreEndedAtTheirDeadlineWithAllTheirChildren) {
  const auto before = std::chrono::steady_clock::now();
  const SshExit exit = run({.shell = "sleep 98765 & echo $!; wait", .deadline = 3s});
  EXPECT_TRUE(exit.timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 60s);
  const pid_t child = std::stoi(output_);
  EXPECT_TRUE(ends_soon(child));
}

TEST_F(SshCommands, EndWhenAskedToStop) {
  std::stop_source stop;
  SshOptions options = server().options();
  options.stop = stop.get_token();
  SshSession session = SshSession::connect(server().target(), options);
  std::string output;
  SshCommand command{.shell = "echo $$; exec sleep 98765"};
  command.on_output = [&](std::string_view piece) {
    output += piece;
    stop.request_stop();
  };
  EXPECT_THROW(std::ignore = session.run(command), Stopped);
  EXPECT_TRUE(ends_soon(std::stoi(output)));
}

TEST_F(SshCommands, SurviveWhatACallbackThrows) {
  SshCommand command{.shell = "echo x; exec sleep 98765"};
  command.on_output = [](std::string_view) { throw std::runtime_error("enough"); };
  EXPECT_THROW(std::ignore = session().run(command), std::runtime_error);
  EXPECT_EQ(run({.shell = "exit 3"}).code, 3);
}

TEST_F(SshCommands, ReportALostConnection) {
  const std::string own_sshd = "kill -KILL $PPID; sleep 5";
  try {
    std::ignore = run({.shell = own_sshd});
    FAIL() << "the connection was not lost";
  } catch (const RemoteError& error) {
    EXPECT_NE(std::string(error.what()).find(session().name()), std::string::npos) << error.what();
  }
}

TEST(ShellLine, RefusesWhatCannotArrive) {
  EXPECT_THROW(shell_line({}), UsageError);
  EXPECT_THROW(shell_line({.argv = {"-n"}}), UsageError);
  EXPECT_THROW(shell_line({.argv = {"a", std::string("b\0c", 3)}}), UsageError);
  EXPECT_THROW(shell_line({.argv = {"a"}, .environment = {"A B=c"}}), UsageError);
  EXPECT_THROW(shell_line({.argv = {"a"}, .environment = {"1A=c"}}), UsageError);
  EXPECT_EQ(shell_line({.argv = {"echo", "it's"}, .environment = {"A=b c"}, .folder = "-x"}),
            "cd ./-x && export A='b c' && exec echo 'it'\\''s'");
  EXPECT_EQ(shell_line({.shell = "uname; id", .skip_login_text = true}), "echo dtrain-output; uname; id");
}

TEST(SshCommandsBehindAShell, LeaveOutWhatItPrintsAtLogin) {
  SKIP_WITHOUT_SSHD();
  const SshServer server("ForceCommand echo Welcome home; eval \"$SSH_ORIGINAL_COMMAND\"\n");
  SshSession session = server.connect();
  std::string output;
  SshCommand command{.shell = "echo out; exit 7", .skip_login_text = true};
  command.on_output = [&](std::string_view piece) { output += piece; };
  EXPECT_EQ(session.run(command).code, 7);
  EXPECT_EQ(output, "out\n");
}

TEST(SshCommandsBehindAShell, AreEndedWhicheverShellItIs) {
  SKIP_WITHOUT_SSHD();
  for (const char* shell : {"/bin/sh", "/usr/bin/tcsh", "/usr/bin/fish"}) {
    if (::access(shell, X_OK) != 0) continue;
    const SshServer server(fmt::format("ForceCommand exec {} -c \"$SSH_ORIGINAL_COMMAND\"\n", shell));
    SshSession session = server.connect();
    std::string output;
    SshCommand command{.argv = {"sh", "-c", "echo $$; exec sleep 98765"}};
    command.on_output = [&](std::string_view piece) {
      output += piece;
      throw std::runtime_error("enough");
    };
    EXPECT_THROW(std::ignore = session.run(command), std::runtime_error) << shell;
    EXPECT_TRUE(ends_soon(std::stoi(output))) << shell;
  }
}

TEST(SshCommandsBehindAShell, NameWhatItPrintsWhereNoCommandRuns) {
  SKIP_WITHOUT_SSHD();
  const SshServer server("ForceCommand echo No login today; exit 1\n");
  SshSession session = server.connect();
  const SshCommand command{.argv = {"true"}, .skip_login_text = true};
  const std::string failure = failure_of([&] { std::ignore = session.run(command); });
  EXPECT_NE(failure.find("printed 'No login today'"), std::string::npos) << failure;
  EXPECT_NE(failure.find(".bashrc"), std::string::npos) << failure;
}

}  // namespace
}  // namespace dtrain::net
