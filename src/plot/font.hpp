// The letters of pictures: font/sans.ttf, built in by CMakeLists.txt. It has those of the languages of Europe, which
// names of classes are written in, and marks that stand on a letter. Made from DejaVuSans.ttf 2.37 by fonttools:
// pyftsubset --no-hinting --layout-features= --drop-tables+=MATH,FFTM,GPOS,GSUB,GDEF,kern --name-IDs=0,13
// --notdef-outline --unicodes=20-7E,A0-17F,192,218-21B,300-304,306-308,30C,386-3CE,400-45F,490-491,2010-2015,
// 2018-201E,2022,2026,2030,2039-203A,20AC,2122,2190-2193,2212,2260,2264-2265
#pragma once

#include <span>

namespace dtrain::plot {

std::span<const unsigned char> font_bytes();

}  // namespace dtrain::plot
