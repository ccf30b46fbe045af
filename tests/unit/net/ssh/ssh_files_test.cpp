#include <sys/mount.h>

#include <algorithm>
#include <fstream>

#include <dtrain/base/hash.hpp>

#include "ssh_server.hpp"

namespace dtrain::net {
namespace {

class SshFiles : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!sshd_is_missing()) server_ = std::make_unique<SshServer>();
  }
  static void TearDownTestSuite() { server_ = nullptr; }
  void SetUp() override {
    SKIP_WITHOUT_SSHD();
    session_.emplace(server_->connect());
    std::filesystem::remove_all(folder());
    session().make_folder(folder());
  }

  SshSession& session() { return *session_; }
  static std::string folder() { return (server_->folder() / "files").string(); }
  static std::string path(const std::string& name) { return folder() + "/" + name; }

 private:
  std::optional<SshSession> session_;
  inline static std::unique_ptr<SshServer> server_;
};

std::string noise(std::size_t size) {
  std::string content(size, '\0');
  for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>((i * i + i / 251) % 256);
  return content;
}

TEST_F(SshFiles, ArriveWholeWithTheirPermissions) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{32 << 10}, std::size_t{5'000'001}}) {
    const std::string content = noise(size);
    session().put_text(content, path("a"), 0751);
    EXPECT_TRUE(read_file(path("a")) == content) << size;
    EXPECT_EQ(session().sha256(path("a")), sha256_hex(bytes_of(content)));
    EXPECT_EQ(session().stat(path("a"))->size, size);
    EXPECT_EQ(session().stat(path("a"))->mode, 0751u);
  }
  EXPECT_EQ(session().list(folder()).size(), 1u);  // no temporary file is left
}

TEST_F(SshFiles, ReplaceWhatWasThereInOneStep) {
  session().put_text("old", path("a"), 0644);
  std::ifstream reader(path("a"));  // holds on to the old file
  session().put_text("new", path("a"), 0644);
  std::string seen;
  reader >> seen;
  EXPECT_EQ(seen, "old");
  EXPECT_EQ(session().read_file(path("a")), "new");
}

TEST_F(SshFiles, AreListedWithKindsAndLinksFollowed) {
  session().put_text("x", path("file"), 0600);
  session().make_folder(path("deep/er/folder"));
  session().make_folder(path("deep/er/folder"));
  std::filesystem::create_symlink(path("file"), path("link"));
  std::filesystem::create_symlink(path("nowhere"), path("broken"));
  std::vector<SshFile> files = session().list(folder());
  std::ranges::sort(files, {}, &SshFile::name);
  ASSERT_EQ(files.size(), 4u);
  EXPECT_EQ(files[0].kind, SshFile::Kind::other);   // broken
  EXPECT_EQ(files[1].kind, SshFile::Kind::folder);  // deep
  EXPECT_EQ(files[2].kind, SshFile::Kind::file);    // file
  EXPECT_EQ(files[3].kind, SshFile::Kind::file);    // link
}

TEST_F(SshFiles, ThatAreNotThereAreNone) {
  EXPECT_EQ(session().stat(path("none")), std::nullopt);
  EXPECT_EQ(session().sha256(path("none")), std::nullopt);
  session().remove(path("none"));
  EXPECT_THROW(session().read_file(path("none")), RemoteError);
  EXPECT_THROW(session().list(path("none")), RemoteError);
}

TEST_F(SshFiles, KeepOddNames) {
  for (const std::string name : {"a b", "it's", "line\nbreak", "back\\slash", "\xc3\xa4", "-n", "*"}) {
    session().put_text(name, path(name), 0644);
    EXPECT_EQ(session().sha256(path(name)), sha256_hex(bytes_of(name))) << name;
    session().rename(path(name), path("moved"));
    EXPECT_EQ(read_file(path("moved")), name);
  }
}

TEST_F(SshFiles, SayWhichFileAndHostFailed) {
  session().put_text("in the way", path("file"), 0644);
  try {
    session().put_text("x", path("no/such/folder"), 0644);
    FAIL() << "it was put into a folder that is not there";
  } catch (const RemoteError& error) {
    EXPECT_NE(std::string(error.what()).find(session().name()), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("no/such/folder"), std::string::npos) << error.what();
  }
  EXPECT_THROW(session().make_folder(path("file/below")), RemoteError);
  session().put_text("still works", path("b"), 0644);
}

TEST_F(SshFiles, AreReadInPart) {
  const std::string content = noise(100'000);
  session().put_text(content, path("a"), 0644);
  EXPECT_EQ(session().read_part(path("a"), 40'000, 50'000), content.substr(40'000, 50'000));
  EXPECT_EQ(session().read_part(path("a"), 99'000, 50'000), content.substr(99'000));
  EXPECT_EQ(session().read_part(path("a"), 200'000, 10), "");
}

TEST_F(SshFiles, AreRefusedWhenTooLongToRead) {
  session().put_text(noise(100'000), path("a"), 0644);
  EXPECT_THROW(session().read_file(path("a"), 99'999), RemoteError);
  EXPECT_EQ(session().read_file(path("a"), 100'000).size(), 100'000u);
}

// Of megabytes that are put, how many are taken before it fails, and what it says then.
std::pair<int, std::string> put_much(SshSession& session, const std::string& file) {
  const std::string piece = noise(1 << 20);
  int taken = 0;
  const auto next = [&] { return ++taken > 200 ? std::string_view() : piece; };
  std::string failure = failure_of([&] { session.put_pieces(next, file, 0644); });
  return {taken, std::move(failure)};
}

TEST_F(SshFiles, AreGivenUpAtTheFirstWriteThatFails) {
  const char* program = "/usr/lib/openssh/sftp-server";
  if (::access(program, X_OK) != 0) GTEST_SKIP() << "SKIPPED LOUDLY: no " << program;
  const SshServer limited(fmt::format("Subsystem sftp ulimit -f 1000; exec env --ignore-signal=XFSZ {}\n", program));
  SshSession session = limited.connect();
  const auto [taken, failure] = put_much(session, (limited.folder() / "a").string());
  EXPECT_LT(taken, 20);
  EXPECT_TRUE(contains(failure, "cannot write to a file: Failure") && contains(failure, "df -h")) << failure;
  EXPECT_EQ(session.stat((limited.folder() / "a").string()), std::nullopt);
}

TEST_F(SshFiles, SayThatTheDiskIsFull) {
  if (::mount("none", folder().c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "SKIPPED LOUDLY: no right to mount a small disk";
  }
  struct Mounted {
    ~Mounted() { ::umount2(folder().c_str(), MNT_DETACH); }
  } mounted;
  const auto [taken, failure] = put_much(session(), path("a"));
  EXPECT_LT(taken, 20);
  EXPECT_TRUE(contains(failure, "its disk is full") && contains(failure, "free some space there")) << failure;
  session().put_text(noise(100'000), path("b"), 0644);  // what was written of the first is gone
}

TEST(SshFilesBehindAShell, NameWhatTheShellPrintsAtLogin) {
  SKIP_WITHOUT_SSHD();
  const SshServer server("Subsystem sftp echo 'Welcome home'; exec sleep 5\n");
  SshSession session = server.connect();
  const std::string failure = failure_of([&] { session.stat("."); });
  EXPECT_TRUE(contains(failure, "not SFTP: 'Welcome home'")) << failure;
  EXPECT_TRUE(contains(failure, ".bashrc")) << failure;
  EXPECT_FALSE(contains(failure, "closed")) << failure;
}

}  // namespace
}  // namespace dtrain::net
