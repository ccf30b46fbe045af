#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include <dtrain/base/files.hpp>
#include <dtrain/base/temporaries.hpp>

namespace dtrain {
namespace {

pid_t ended_process() {
  const pid_t process = ::fork();
  if (process == 0) ::_exit(0);
  ::waitpid(process, nullptr, 0);
  return process;
}

class Temporaries : public testing::Test {
 protected:
  Temporaries() : folder_(testing::TempDir() + "dtrain-temporaries-" + std::to_string(::getpid())) {
    make_folder(folder_);
  }
  ~Temporaries() override { std::filesystem::remove_all(folder_); }
  Path old_file(const std::string& name, std::chrono::minutes age = std::chrono::minutes(5)) const {
    write_file_atomic(folder_ / name, "half");
    std::filesystem::last_write_time(folder_ / name, std::filesystem::file_time_type::clock::now() - age);
    return folder_ / name;
  }
  // The name that a process of this number gives its temporary file of m-0001.json here.
  std::string name_by(const std::string& process) const {
    const std::string own = temporary_for("m-0001.json").string(), start = "m-0001.json.tmp.";
    return start + process + own.substr(own.find('.', start.size()));
  }
  const Path folder_;
  const std::string dead_ = std::to_string(ended_process());
};

TEST_F(Temporaries, OfDeadProcessesAreRemoved) {
  const Path left = old_file("m-0001.safetensors.tmp." + dead_);
  EXPECT_EQ(remove_abandoned_temporaries(folder_), std::vector<Path>{left});
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(Temporaries, OfTheLongestNameFitBesideIt) {
  const Path longest = folder_ / (std::string(250, 'n') + ".json");
  EXPECT_NO_THROW(write_file_atomic(longest, "whole"));
  EXPECT_EQ(read_file(longest), "whole");
  EXPECT_EQ(temporary_for(longest).parent_path(), folder_);
  EXPECT_TRUE(temporary_for(longest).filename().string().starts_with(std::string(200, 'n')));
}

TEST_F(Temporaries, OfLiveProcessesOthersAndTheFreshStay) {
  old_file("m-0001.json.tmp." + std::to_string(::getpid()));
  old_file("m-0001.json.tmp.");
  old_file("m-0001.json.tmp.12x");
  old_file("m-0001.json");
  write_file_atomic(folder_ / ("m-0002.json.tmp." + dead_), "fresh, perhaps of another machine");
  old_file("other-0001.json.tmp." + dead_);
  EXPECT_TRUE(remove_abandoned_temporaries(folder_, "m-").empty());
  EXPECT_TRUE(remove_abandoned_temporaries(folder_ / "none").empty());
}

TEST_F(Temporaries, OfThisMachineAreRemovedOnceTheirProcessIsDead) {
  EXPECT_NE(temporary_for("m-0001.json"), temporary_for("m-0001.json"));
  old_file(name_by(std::to_string(::getpid())), std::chrono::days(2));
  const Path left = old_file(name_by(dead_), std::chrono::minutes(0));
  EXPECT_EQ(remove_abandoned_temporaries(folder_, "m-"), std::vector<Path>{left});
}

TEST_F(Temporaries, OfEndedProcessesAreKnownByTheirNamesOnOtherHostsToo) {
  EXPECT_TRUE(is_temporary_of_ended_process(name_by(dead_)));
  EXPECT_FALSE(is_temporary_of_ended_process(name_by(std::to_string(::getpid()))));
  EXPECT_FALSE(is_temporary_of_ended_process("m-0001.json.tmp." + dead_ + ".0123cdef.01234567")) << "of elsewhere";
  for (const char* other : {"m-0001.json.tmp.0123456789ab", "m-0001.json", "m.tmp.", ""})
    EXPECT_FALSE(is_temporary_of_ended_process(other)) << other;
  EXPECT_FALSE(is_temporary_of_ended_process("m-0001.json.tmp." + dead_)) << "of no known machine";
}

// A writer there that is held up for minutes goes on; a process number of there says nothing here.
TEST_F(Temporaries, OfAnotherMachineStayForADay) {
  old_file("m-0001.json.tmp." + dead_ + ".0123cdef.01234567", std::chrono::hours(20));
  EXPECT_TRUE(remove_abandoned_temporaries(folder_, "m-").empty());
  const Path left =
      old_file("m-0002.json.tmp." + std::to_string(::getpid()) + ".0123cdef.01234567", std::chrono::hours(30));
  EXPECT_EQ(remove_abandoned_temporaries(folder_, "m-"), std::vector<Path>{left});
}

}  // namespace
}  // namespace dtrain
