// The channels of a tensor in the rows of the kernels.
#include "rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace dtrain::backend::cpu {
namespace {

TEST(RepeatedChannels, StandOnceInEachRepetitionOfARow) {
  const RepeatedChannels in_row(3);
  ASSERT_EQ(in_row.width, row_width(3));
  std::vector<float> row(static_cast<std::size_t>(in_row.width), 0.0f);
  in_row.write(row.data(), 1, 5);
  for (std::size_t k = 0; k < row.size(); ++k) EXPECT_EQ(row[k], k % 3 == 1 ? 5.0f : 0.0f) << k;
}

// In double 1e16 + 1 is 1e16 again, so that the order shows.
TEST(RepeatedChannels, AreAddedInTheirOrderBehindWhatIsThere) {
  const RepeatedChannels in_row(16);
  std::vector<double> row(static_cast<std::size_t>(in_row.width), 0.0);
  row[2] = 1, row[2 + 16] = 1, row[2 + 32] = -1e16;
  EXPECT_EQ(in_row.sum(row.data(), 2), 2 - 1e16);
  double total = 1e16;
  in_row.add(row.data(), 2, total);
  EXPECT_EQ(total, 0);
}

}  // namespace
}  // namespace dtrain::backend::cpu
