// What is said of an epoch that a prefix does not have.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/train/checkpoint.hpp>

#include "data/temporary_folder.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::train {
namespace {

class MissingEpoch : public testing::Test {
 protected:
  Path prefix() const { return folder_ / "r8"; }
  void save(std::uint32_t epoch, std::uint64_t step = 0) const {
    save_checkpoint({prefix(), epoch, step}, small_checkpoint(epoch));
  }
  void write(const char* ending) const { write_file_atomic(prefix().string() + ending, "x"); }
  std::string hint(std::uint32_t epoch = 7) const {
    try {
      load_checkpoint(prefix(), epoch);
    } catch (const DataError& error) {
      EXPECT_EQ(error.what(), fmt::format("{}-{:04}.json: there is no such checkpoint", prefix().string(), epoch));
      return error.hint();
    }
    return "it was loaded";
  }
  std::string newest(const char* name) const { return fmt::format("the newest is {}-{}", prefix().string(), name); }

  TemporaryFolder folder_;
};

TEST_F(MissingEpoch, ComesWithThoseThatAreThere) {
  EXPECT_EQ(hint(), fmt::format("there is none of the prefix {}", prefix().string()));
  save(0, 120);
  EXPECT_EQ(hint(), newest("0000-step00000120, which stands inside an epoch"));
  save(2);
  EXPECT_EQ(hint(), newest("0002"));
  save(2, 9);
  EXPECT_EQ(hint(), newest("0002-step00000009; complete epochs that are there: 2"));
  for (const std::uint32_t epoch : {1u, 4u, 8u, 9u}) save(epoch);
  EXPECT_EQ(hint(), newest("0009; complete epochs that are there: 9, 8, 4, 2, 1"));
  for (const std::uint32_t epoch : {10u, 11u}) save(epoch);
  EXPECT_EQ(hint(), newest("0011; complete epochs that are there: 11, 10, 9, 8, 4, and 2 more"));
}

TEST_F(MissingEpoch, OfMXNetDoesToo) {
  write("-symbol.json");
  EXPECT_EQ(hint(), prefix().string() + "-symbol.json is there, without a .params file of any epoch");
  write("-0003.params");
  EXPECT_EQ(hint(), newest("0003"));
  write("-0012.params");
  EXPECT_EQ(hint(), newest("0012; complete epochs that are there: 12, 3"));
  save(5);
  save(12);
  EXPECT_EQ(hint(), newest("0012; complete epochs that are there: 12, 5, 3"));
  std::filesystem::remove(prefix().string() + "-symbol.json");
  const std::string fault =
      fmt::format("{0}-0012.params is there, but {0}-symbol.json, which it needs, is not", prefix().string());
  EXPECT_EQ(hint(), newest("0012; complete epochs that are there: 12, 5; ") + fault);
  for (const char* epoch : {"-0005", "-0012"}) std::filesystem::remove(prefix().string() + epoch + ".json");
  EXPECT_EQ(hint(), fault);
}

}  // namespace
}  // namespace dtrain::train
