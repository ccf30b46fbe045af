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
  Path old_file(const std::string& name) const {
    write_file_atomic(folder_ / name, "half");
    std::filesystem::last_write_time(folder_ / name,
                                     std::filesystem::file_time_type::clock::now() - std::chrono::minutes(5));
    return folder_ / name;
  }
  const Path folder_;
  const std::string dead_ = std::to_string(ended_process());
};

TEST_F(Temporaries, OfDeadProcessesAreRemoved) {
  const Path left = old_file("m-0001.safetensors.tmp." + dead_);
  EXPECT_EQ(remove_abandoned_temporaries(folder_), std::vector<Path>{left});
  EXPECT_FALSE(std::filesystem::exists(left));
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

}  // namespace
}  // namespace dtrain
