#include "catalog.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <utility>

#include "common/temporary_folder.hpp"

namespace dtrain::board {
namespace {

TEST(Catalog, ARunIsShownOnceItsLinesAreRead) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "a-run");
  std::ofstream(folder.path() / "a-run" / "steps.jsonl")
      << "{\"time\":\"2026-01-31T12:00:01Z\",\"epoch\":0,\"step\":0,\"steps\":9,\"loss\":2}\n";
  Catalog catalog({folder.path().string()}, nullptr);
  bool found = false;  // stopped between finding and reading
  catalog.look({}, [&] { return std::exchange(found, true); });
  EXPECT_TRUE(catalog.rows().as_array().empty());
  EXPECT_TRUE(catalog.ids().empty());
  catalog.look({}, [] { return false; });
  const Json rows = catalog.rows();
  ASSERT_EQ(rows.as_array().size(), 1u);
  EXPECT_EQ(rows.as_array()[0].at("lines").as_integer(), 1);
  EXPECT_EQ(catalog.ids().size(), 1u);
}

}  // namespace
}  // namespace dtrain::board
