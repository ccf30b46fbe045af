#include <gtest/gtest.h>

#include <dtrain/train/weights.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::train {
namespace {

TEST(WeightsFile, ThatIsNotThereIsRefusedWithWhatToGive) {
  data::expect_error([] { network_of_weights("no/such"); }, "no/such: neither a file of weights nor the prefix of a");
  data::expect_error([] { network_of_weights("no/such"); },
                     "give a file, the prefix of a checkpoint or URL#sha256=HEX");
  data::expect_error([] { network_of_weights("resnet18"); },
                     "it is the name of a network: give a file with its weights");
}

}  // namespace
}  // namespace dtrain::train
