// dtrain_change_picture C H W FILL: from standard input, a picture of bytes [c, h, w]; for each operation and amount
// on a line of arguments ("OPERATION AMOUNT" pairs behind FILL), writes the changed picture to standard output. For the
// judge picture_changes.py only.
#include <cstdio>
#include <exception>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "augment/picture_changes.hpp"

using namespace dtrain::data;

namespace {

PlanarPicture read_picture(char** arguments) {
  PlanarPicture picture{std::stoi(arguments[0]), std::stoi(arguments[1]), std::stoi(arguments[2]), {}};
  picture.pixels.assign(std::istreambuf_iterator<char>(std::cin), {});
  if (picture.pixels.size() != static_cast<std::size_t>(picture.c) * picture.plane_size()) {
    throw std::runtime_error("standard input is not a picture of this size");
  }
  return picture;
}

}  // namespace

int main(int count, char** arguments) try {
  if (count < 5 || count % 2 == 0)
    throw std::runtime_error("usage: dtrain_change_picture C H W FILL [OPERATION AMOUNT]...");
  const PlanarPicture picture = read_picture(arguments + 1);
  const int fill = std::stoi(arguments[4]);
  std::vector<std::uint8_t> scratch;
  for (int i = 5; i < count; i += 2) {
    PlanarPicture changed = picture;
    apply(static_cast<Operation>(std::stoi(arguments[i])), std::stod(arguments[i + 1]), static_cast<std::uint8_t>(fill),
          changed, scratch);
    std::fwrite(changed.pixels.data(), 1, changed.pixels.size(), stdout);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
