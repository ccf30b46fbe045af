#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/pipe.hpp>

#include "spec/host_list.hpp"

namespace dtrain::job {
namespace {

class HostListTest : public ::testing::Test {
 protected:
  HostListTest() : folder_(std::filesystem::temp_directory_path() / ("dtrain-hosts-" + std::to_string(::getpid()))) {
    make_folder(folder_);
    options_.folder = folder_;
  }
  ~HostListTest() override { std::filesystem::remove_all(folder_); }

  void hosts(const std::string& text) {
    options_.hostfile = folder_ / "hosts";
    write_file_atomic(*options_.hostfile, text);
  }
  std::vector<std::string> chosen(bool chose_number = false, bool resume = false) {
    std::vector<std::string> names;
    for (const auto& host : choose_hosts(options_, chose_number, resume).list.hosts) names.push_back(host.name);
    return names;
  }

  UsageError refusal(bool chose_number) {
    try {
      chosen(chose_number);
    } catch (const UsageError& error) {
      return error;
    }
    ADD_FAILURE() << "it must throw";
    return UsageError("");
  }

  Path folder_;
  config::JobOptions options_;
};

using Names = std::vector<std::string>;

TEST_F(HostListTest, WithoutAFileHostsAreNumbered) {
  options_.hosts = 3;
  EXPECT_EQ(chosen(true), (Names{"worker1", "worker2", "worker3"}));
}

TEST_F(HostListTest, AllHostsOfTheFileAreTaken) {
  hosts("# two\nw1\nw2 slots=2");
  EXPECT_EQ(chosen(), (Names{"w1", "w2"}));
}

TEST_F(HostListTest, TheFirstHostsOfTheFileAreTaken) {
  hosts("w1\n\nw2\nw3\n");
  options_.hosts = 2;
  EXPECT_EQ(chosen(true), (Names{"w1", "w2"}));
}

TEST_F(HostListTest, TheFirstOfManyHostsAreTakenInTimeInProportion) {
  std::string text = "\xef\xbb\xbf# of the rack\n";
  for (int i = 0; i < 20'000; ++i) text += "node" + std::to_string(i) + ".cluster.example # rack\n";
  hosts(text);
  options_.hosts = 15'000;
  const Names first = chosen(true);
  ASSERT_EQ(first.size(), 15'000u);
  EXPECT_EQ(first.back(), "node14999.cluster.example");
}

TEST_F(HostListTest, SlotsInACommentAreNone) {
  hosts("w1 # slots=2\nw2 slots=3 # more\n# slots=2\n");
  options_.slots = 4;
  EXPECT_EQ(choose_hosts(options_, false, false).text, "w1 slots=4\nw2 slots=3 # more\n# slots=2\n");
}

TEST_F(HostListTest, MoreHostsThanTheFileHasAreRefused) {
  hosts("w1\n");
  options_.hosts = 2;
  const UsageError error = refusal(true);
  EXPECT_NE(std::string(error.what()).find("--num-workers 2"), std::string::npos) << error.what();
  for (const char* word : {"leave it out", "slots=N", "`dtrain launch --nproc-per-host N`"})
    EXPECT_NE(error.hint().find(word), std::string::npos) << error.hint();
}

TEST_F(HostListTest, AHostThatIsListedTwiceIsRefusedWithTheWayToTwoWorkers) {
  hosts("127.0.0.1\n127.0.0.1\n-x\n");
  const UsageError error = refusal(false);
  EXPECT_TRUE(std::string_view(error.what()).ends_with("/hosts: line 2: '127.0.0.1' is listed twice")) << error.what();
  EXPECT_EQ(error.hint(), "write it once, with slots=2 for two workers");
  hosts("-x\nw1\nw1\n");
  EXPECT_NE(std::string_view(refusal(false).what()).find("line 1:"), std::string_view::npos);
}

TEST_F(HostListTest, AFileWithoutHostsIsRefused) {
  hosts("# nobody\n");
  EXPECT_THROW(chosen(), UsageError);
}

TEST_F(HostListTest, AFifoWithoutAWriterIsRefusedInPlaceOfWaiting) {
  options_.hostfile = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(options_.hostfile->c_str(), 0600), 0);
  EXPECT_THROW(chosen(), Error);
  EXPECT_THROW(require_lasting_host_file(options_), UsageError);
}

// The shell's <(...).
TEST_F(HostListTest, APipeIsReadOnceAndSaysSoTheNextTime) {
  Pipe pipe = make_pipe();
  ASSERT_EQ(::write(pipe.write_end.get(), "w1\nw2\n", 6), 6);
  pipe.write_end = {};
  options_.hostfile = "/dev/fd/" + std::to_string(pipe.read_end.get());
  EXPECT_THROW(require_lasting_host_file(options_), UsageError);
  EXPECT_EQ(chosen(), (Names{"w1", "w2"}));
  try {
    chosen();
    FAIL() << "the pipe is empty";
  } catch (const UsageError& error) {
    EXPECT_NE(error.hint().find("a pipe can be read once"), std::string::npos) << error.what();
  }
}

TEST_F(HostListTest, ADeviceWithoutAnEndIsNoText) {
  options_.hostfile = "/dev/zero";
  EXPECT_THROW(chosen(), UsageError);
}

TEST_F(HostListTest, ACommandThatRunsLaterNeedsAFileThatStays) {
  require_lasting_host_file(options_);
  options_.hostfile = folder_ / "missing";
  EXPECT_THROW(require_lasting_host_file(options_), UsageError);
  hosts("w1\n");
  require_lasting_host_file(options_);
}

TEST_F(HostListTest, AResumedJobKeepsItsHosts) {
  hosts("w1\nw2\n");
  write_file_atomic(folder_ / "host_worker", "w2\nw3\n");
  EXPECT_EQ(chosen(false, true), (Names{"w2", "w3"}));
  options_.reset_hosts = true;
  EXPECT_EQ(chosen(false, true), (Names{"w1", "w2"}));
}

class GrantedHostsTest : public HostListTest {
 protected:
  GrantedHostsTest() {
    options_.launcher = config::Launcher::sge;
    write_file_atomic(folder_ / "granted", "h1 2 all.q@h1 UNDEFINED\nh2 2 all.q@h2 UNDEFINED\n");
    ::unsetenv("SLURM_JOB_NODELIST");
    ::setenv("PE_HOSTFILE", (folder_ / "granted").c_str(), 1);
  }
  ~GrantedHostsTest() override { ::unsetenv("PE_HOSTFILE"); }
};

TEST_F(GrantedHostsTest, AreThoseOfTheSchedulersJobWithTheirSlots) {
  EXPECT_EQ(choose_hosts(options_, false, false).text, "h1 slots=2\nh2 slots=2\n");
}

TEST_F(GrantedHostsTest, HaveTheUsersSlotsWhereTheseAreGiven) {
  options_.slots = 3;
  EXPECT_EQ(choose_hosts(options_, false, false).text, "h1 slots=3\nh2 slots=3\n");
  options_.slots = 1;
  EXPECT_EQ(choose_hosts(options_, false, false).text, "h1\nh2\n");
}

TEST_F(GrantedHostsTest, AreAllWhereSlotsWereAskedFor) {
  options_.hosts = 4;
  EXPECT_EQ(chosen(true), (Names{"h1", "h2"}));
  options_.hosts = 1;
  EXPECT_EQ(chosen(true), Names{"h1"});
  options_.hosts = 3;
  EXPECT_THROW(chosen(true), UsageError);
}

TEST_F(GrantedHostsTest, AreNotAskedForWhereAFileNamesHosts) {
  hosts("w1\n");
  EXPECT_EQ(chosen(), Names{"w1"});
}

// A requeued job gets others.
TEST_F(GrantedHostsTest, ReplaceTheKeptOnesOfAnotherGrant) {
  write_file_atomic(folder_ / "host_worker", "h2\nh3\n");
  const StartingHosts others = choose_hosts(options_, false, true);
  EXPECT_EQ(others.text, "h1 slots=2\nh2 slots=2\n");
  EXPECT_FALSE(others.kept);
  EXPECT_EQ(others.note, "Grid Engine granted this job other hosts than those of the kept list, which has h3");
}

TEST_F(GrantedHostsTest, LeaveTheKeptOnesThatAreAmongThem) {
  write_file_atomic(folder_ / "host_worker", "h2\n");
  const StartingHosts kept = choose_hosts(options_, false, true);
  EXPECT_EQ(kept.text, "h2\n");
  EXPECT_TRUE(kept.kept);
  EXPECT_EQ(kept.note, "");
}

TEST_F(GrantedHostsTest, LeaveTheKeptOnesWhereAFileNamesHosts) {
  hosts("h3\n");
  write_file_atomic(folder_ / "host_worker", "h3\n");
  EXPECT_TRUE(choose_hosts(options_, false, true).kept);
}

TEST_F(GrantedHostsTest, LeaveTheKeptOnesOutsideOfAJob) {
  ::unsetenv("PE_HOSTFILE");
  options_.launcher = config::Launcher::mpi;
  write_file_atomic(folder_ / "host_worker", "h3\n");
  EXPECT_EQ(chosen(false, true), Names{"h3"});
}

TEST_F(GrantedHostsTest, AreMissedOutsideOfAJob) {
  ::unsetenv("PE_HOSTFILE");
  options_.launcher = config::Launcher::mpi;
  EXPECT_THROW(chosen(), UsageError);
}

}  // namespace
}  // namespace dtrain::job
