"""Finds the encodings in which bytes are most likely text in some language."""

import unicodedata
from collections.abc import Sequence

# Names for iconv, by the names of Python's codecs. Of equally likely encodings, the first one is chosen.
ENCODINGS = {
    "cp1252": "CP1252",
    "cp1250": "CP1250",
    "iso8859_2": "ISO-8859-2",
    "cp1255": "CP1255",
    "cp1251": "CP1251",
    "koi8_r": "KOI8-R",
    "iso8859_5": "ISO-8859-5",
    "cp1253": "CP1253",
    "cp1254": "CP1254",
    "cp1256": "CP1256",
    "cp1257": "CP1257",
    "iso8859_13": "ISO-8859-13",
    "cp932": "CP932",
    "euc_jp": "EUC-JP",
    "gb18030": "GB18030",
    "cp949": "CP949",
    "big5": "BIG5",
    "cp874": "CP874",
    "mac_roman": "MACINTOSH",
    "cp866": "CP866",
    "cp850": "CP850",
}
# Letters outside ASCII in usual text of languages with Latin letters. charset-normalizer compares only the most
# frequent letters of a language, and often cannot tell neighbouring code pages apart.
_ALPHABETS = (
    "àâæçéèêëîïôœùûüÿ",  # French
    "äöüß",  # German
    "áéíñóúü",  # Spanish
    "áâãàçéêíóôõúü",  # Portuguese
    "àèéìíîòóùú",  # Italian
    "åäöæøéàóôü",  # Danish, Norwegian, Swedish, Finnish
    "áðéíóúýþæö",  # Icelandic
    "äëïéèöóüçê",  # Dutch
    "àçéèíïóòúü",  # Catalan
    "áčďéěíňóřšťúůýž",  # Czech
    "áäčďéíĺľňóôŕšťúýž",  # Slovak
    "ąćęłńóśźż",  # Polish
    "áéíóöőúüű",  # Hungarian
    "ăâîşţ",  # Romanian
    "čćđšž",  # Bosnian, Croatian, Slovenian
    "ąčęėįšųūž",  # Lithuanian
    "āčēģīķļņšūž",  # Latvian
    "äõöüšž",  # Estonian
    "çğıöşüâîû",  # Turkish
)
_USUAL_MESS, _MAX_MESS = 0.1, 0.25
"""Mess up to which it is no sign of a wrong encoding, as text with many accents has some, and the most in a text."""
_FIT = 2
"""Weight of the share of letters of one alphabet, relative to the coherence."""
_PREFERENCE = 0.05
"""Score of the most frequent encoding, CP1252, in addition to that of its text."""
_CLOSE = 0.07
"""Difference below which two encodings are about equally likely."""
_SYMBOLS = {"Cc", "No", "Sc", "Sk", "Sm", "So"}
_MIN_SIGNS = 4
"""Number that keeps one symbol from deciding."""
_SIGNS = {*"ªµº¶§†‡"}
"""Signs of any language that Unicode has as letters or punctuation."""
_IN_NO_WORD = {*"„”“«»"}
"""Punctuation that stands beside words, but not inside them."""
_AFTER_WORDS = {*"®™©°²³€"}


def likely_codecs(samples: dict[str, bytes]) -> list[str]:
    """Return the most likely codec of some bytes, and one that is about as likely and reads otherwise, if any.

    `samples` has the bytes by the codecs that can decode them.
    """
    from charset_normalizer import from_bytes  # not at the top, because it is slow to load

    scores: dict[str, float] = {}
    for codec, sample in samples.items():
        found = from_bytes(sample, cp_isolation=[codec], threshold=1).best()
        words = sorted({*sample.decode(codec).split()})
        if found is not None and (mess := found.chaos + _share_of_symbols(words)) <= _MAX_MESS:
            preferred = _PREFERENCE * (codec == "cp1252")
            scores[codec] = round(found.coherence + _FIT * _fit(words) + preferred - max(0, mess - _USUAL_MESS), 2)
    if not scores:
        return []
    best, *others = sorted(scores, key=scores.__getitem__, reverse=True)
    text = samples[best].decode(best)
    close = [each for each in others if scores[each] > scores[best] - _CLOSE and samples[each].decode(each) != text]
    return [best, *close[:1]]


def _fit(words: Sequence[str]) -> float:
    """Return the share of the letters outside ASCII that the most likely alphabet has, or 1 if there are no letters."""
    others = (each for each in "".join(words).lower() if not each.isascii() and each not in _SIGNS)
    letters = [each for each in others if unicodedata.category(each)[0] in "LM"]
    if not letters:
        return 1
    return max(sum(letter in each for letter in letters) for each in _ALPHABETS) / len(letters)


def _share_of_symbols(words: Sequence[str]) -> float:
    """Return the share of characters outside ASCII that are symbols beside letters, or upper case after lower case."""
    count = sum(
        (before.isalpha() and (_is_symbol(letter) or (letter in _IN_NO_WORD and after.isalpha())))
        or (after.isalpha() and _is_symbol(letter) and not letter.isalpha() and not before.isdigit())
        or (before.islower() and letter.isupper() and not (before + letter).isascii())
        for word in words
        for before, letter, after in zip(f" {word}", word, f"{word[1:]} ", strict=False)
    )
    return count / (_MIN_SIGNS + sum(not letter.isascii() for word in words for letter in word))


def _is_symbol(letter: str) -> bool:
    is_symbol = unicodedata.category(letter) in _SYMBOLS or letter in _SIGNS
    return is_symbol and not letter.isascii() and letter not in _AFTER_WORDS
