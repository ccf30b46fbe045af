#include "host_list.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <dtrain/base/error.hpp>

namespace dtrain::cli {
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

  Path folder_;
  JobOptions options_;
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

TEST_F(HostListTest, MoreHostsThanTheFileHasAreRefused) {
  hosts("w1\n");
  options_.hosts = 2;
  EXPECT_THROW(chosen(true), UsageError);
}

TEST_F(HostListTest, AFileWithoutHostsIsRefused) {
  hosts("# nobody\n");
  EXPECT_THROW(chosen(), UsageError);
}

TEST_F(HostListTest, AResumedJobKeepsItsHosts) {
  hosts("w1\nw2\n");
  write_file_atomic(folder_ / "host_worker", "w2\nw3\n");
  EXPECT_EQ(chosen(false, true), (Names{"w2", "w3"}));
  options_.reset_hosts = true;
  EXPECT_EQ(chosen(false, true), (Names{"w1", "w2"}));
}

}  // namespace
}  // namespace dtrain::cli
