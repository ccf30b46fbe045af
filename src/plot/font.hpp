// The letters of pictures: font/sans.ttf, built in by CMakeLists.txt.
#pragma once

#include <span>

namespace dtrain::plot {

std::span<const unsigned char> font_bytes();

}  // namespace dtrain::plot
