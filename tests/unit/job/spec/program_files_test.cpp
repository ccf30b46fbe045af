#include <gtest/gtest.h>

#include <utility>

#include "common/temporary_folder.hpp"
#include "spec/program_files.hpp"

namespace dtrain::job {
namespace {

using Strings = std::vector<std::string>;

class ProgramFilesTest : public ::testing::Test {
 protected:
  ProgramFilesTest() {
    for (const char* file :
         {"host_worker_log", "events.jsonl", "journal.jsonl", "metrics.prom", "coordinator.json", "coordinator.lock",
          "agents.lock", "logs/worker1.0.log", "logs/worker1.0.log.1", "logs/worker1.0.ps0.log",
          "logs/agent_worker1.log", "logs/prepare_worker1.log", "prepare_data_success_worker2", "logs/coordinator.log",
          "run/progress", "run/0/deadline.json", "run/0/saved", "run/0/error.json", "gen/3"})
      write(file);
    write("host_worker", "worker1\nworker2\n");
  }
  void write(const char* file, std::string_view text = "") {
    make_folder((folder_ / file).parent_path());
    write_file_atomic(folder_ / file, text);
  }
  Strings found() const { return files_of_program({folder_.path()}); }
  TemporaryFolder folder_;
};

TEST_F(ProgramFilesTest, WhatDtrainMakesIsNotTheirs) { EXPECT_EQ(found(), Strings()); }

TEST_F(ProgramFilesTest, AllElseIs) {
  for (const char* file :
       {"weights.pt", "logs/epoch.0.log", "logs/epoch.0.log.1", "logs/prepare_data.log", "logs/worker1.0.log.old",
        "logs/worker1.loss.log", "prepare_data_success", "run/0/weights.pt", "run/x/a", "run/007/saved", "gen/0.png",
        "checkpoints/1/w", "checkpoints/2/w"})
    write(file);
  EXPECT_EQ(found(), (Strings{"checkpoints", "gen/0.png", "logs/epoch.0.log", "logs/epoch.0.log.1",
                              "logs/prepare_data.log", "logs/worker1.0.log.old", "logs/worker1.loss.log",
                              "prepare_data_success", "run/0/weights.pt", "run/007", "run/x", "weights.pt"}));
}

TEST_F(ProgramFilesTest, LogsOfAHostThatLeftTheListAreDtrains) {
  write("logs/worker9.0.log");
  EXPECT_EQ(found(), Strings{"logs/worker9.0.log"});
  write("host_worker_log", "0 ADDED worker9 1\n1 REMOVED worker9 2\n");
  EXPECT_EQ(found(), Strings());
}

TEST_F(ProgramFilesTest, ALinkOrAFolderByTheNameOfAFileIsTheirs) {
  std::filesystem::create_symlink("/", folder_ / "run/1");
  std::filesystem::remove(folder_ / "run/0/saved");
  make_folder(folder_ / "run/0/saved");
  EXPECT_EQ(found(), (Strings{"run/0/saved", "run/1"}));
}

}  // namespace
}  // namespace dtrain::job
