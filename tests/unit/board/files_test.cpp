#include "files.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <fstream>

#include "common/temporary_folder.hpp"
#include "log_answers.hpp"
#include "reply.hpp"

namespace dtrain::board {
namespace {

// A folder of this user, and one of runs into which another user put links to it.
class FolderWithLinks : public testing::Test {
 protected:
  FolderWithLinks() {
    std::filesystem::create_directories(own_);
    std::filesystem::create_directories(run_ / "logs");
    std::ofstream(own_ / "w0.log") << "secret\n";
    std::ofstream(run_ / "logs" / "w1.log") << "a log\n";
  }
  std::string read(const Path& path) const { return files_->read(path.string(), 0, 100); }

  const TemporaryFolder folder_;
  const Path own_ = folder_ / "own", runs_ = folder_ / "runs", run_ = runs_ / "job";
  const std::unique_ptr<Files> files_ = open_files(runs_.string(), nullptr);
};

TEST_F(FolderWithLinks, LeadsNowhere) {
  std::filesystem::create_symlink(own_ / "w0.log", run_ / "logs" / "w0.log");
  std::filesystem::create_directory_symlink(own_, run_ / "own");
  EXPECT_EQ(read(run_ / "logs" / "w1.log"), "a log\n");
  for (const Path& path : {run_ / "logs" / "w0.log", run_ / "own" / "w0.log", run_ / ".." / ".." / "own" / "w0.log",
                           own_ / "w0.log", run_ / "logs"}) {
    EXPECT_EQ(read(path), "") << path;
    EXPECT_EQ(files_->size(path.string()), std::nullopt) << path;
    EXPECT_EQ(files_->version(path.string()), "") << path;
  }
  ASSERT_EQ(files_->list((run_ / "logs").string()).size(), 1u);
  EXPECT_EQ(files_->list((run_ / "logs").string()).front().name, "w1.log");
  EXPECT_TRUE(files_->list((run_ / "own").string()).empty());
}

TEST_F(FolderWithLinks, ShowsNoLogThatIsOne) {
  std::filesystem::create_symlink(own_ / "w0.log", run_ / "logs" / "w0.log");
  EXPECT_EQ(logs_of(*files_, run_.string()).at("logs").as_array().size(), 1u);
  EXPECT_THROW(log_of(*files_, run_.string(), *parse_target("/api/log?name=w0.log")), Missing);
  std::filesystem::remove_all(run_ / "logs");
  std::filesystem::create_directory_symlink(own_, run_ / "logs");
  EXPECT_TRUE(logs_of(*files_, run_.string()).at("logs").as_array().empty());
}

TEST_F(FolderWithLinks, WaitsForNothing) {
  const Path pipe = run_ / "steps.jsonl", socket = run_ / "events.jsonl";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const FileDescriptor listener(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (socket.string().size() < sizeof name.sun_path) {
    std::ranges::copy(socket.string(), name.sun_path);
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  }
  for (const Path& path : {pipe, socket}) {
    EXPECT_EQ(read(path), "");
    EXPECT_EQ(files_->size(path.string()), std::nullopt);
  }
  EXPECT_TRUE(files_->find_runs().folders.empty()) << "neither is a record";
}

TEST_F(FolderWithLinks, IsFoundThroughALinkThatTheUserNames) {
  std::ofstream(run_ / "steps.jsonl") << "{}\n";
  std::filesystem::create_directory_symlink(runs_, folder_ / "named");
  const auto files = open_files((folder_ / "named").string(), nullptr);
  const std::string run = (folder_ / "named" / "job").string();
  EXPECT_EQ(files->find_runs().folders, std::vector<std::string>{run});
  EXPECT_EQ(files->read(run + "/steps.jsonl", 0, 100), "{}\n");
  EXPECT_EQ(files->list(run + "/logs").size(), 1u);
  std::filesystem::create_directory_symlink(run_, folder_ / "m-run");
  const auto beside = open_files((folder_ / "m").string(), nullptr);
  EXPECT_EQ(beside->find_runs().folders, std::vector<std::string>{(folder_ / "m-run").string()});
  EXPECT_EQ(beside->read((folder_ / "m-run" / "steps.jsonl").string(), 0, 100), "{}\n");
}

TEST_F(FolderWithLinks, IsNoRunAnyMoreOnceALinkTookItsPlace) {
  std::ofstream(run_ / "steps.jsonl") << "{}\n";
  std::ofstream(own_ / "steps.jsonl") << "secret\n";
  EXPECT_EQ(files_->size((run_ / "steps.jsonl").string()), 3u);
  std::filesystem::rename(run_, runs_ / "away");
  std::filesystem::create_directory_symlink(own_, run_);
  EXPECT_EQ(files_->size((run_ / "steps.jsonl").string()), std::nullopt);
  EXPECT_EQ(files_->find_runs().folders, std::vector<std::string>{(runs_ / "away").string()});
}

}  // namespace
}  // namespace dtrain::board
