"""Find the zone of the IANA database that a calendar's TZID means.

Source of the table: Unicode CLDR, common/supplemental/windowsZones.xml as of 2026, the rows of territory 001.
"""

from typing import Final

from roost_core.placement.headroom_windows import is_time_zone

# Windows' name, without its last words "Standard Time", = zone. Names with ! have no such words.
_TABLE: Final = """
AUS Central=Australia/Darwin; AUS Eastern=Australia/Sydney; Afghanistan=Asia/Kabul; Alaskan=America/Anchorage;
Alberta=America/Edmonton; Aleutian=America/Adak; Altai=Asia/Barnaul; Arab=Asia/Riyadh; Arabian=Asia/Dubai;
Arabic=Asia/Baghdad; Argentina=America/Buenos_Aires; Astrakhan=Europe/Astrakhan; Atlantic=America/Halifax;
Aus Central W.=Australia/Eucla; Azerbaijan=Asia/Baku; Azores=Atlantic/Azores; Bahia=America/Bahia;
Bangladesh=Asia/Dhaka; Belarus=Europe/Minsk; Bougainville=Pacific/Bougainville;
British Columbia=America/Vancouver; Canada Central=America/Regina; Cape Verde=Atlantic/Cape_Verde;
Caucasus=Asia/Yerevan; Cen. Australia=Australia/Adelaide; Central America=America/Guatemala;
Central Asia=Asia/Bishkek; Central Brazilian=America/Cuiaba; Central Europe=Europe/Budapest;
Central European=Europe/Warsaw; Central Pacific=Pacific/Guadalcanal; Central=America/Chicago;
Central Standard Time (Mexico)!=America/Mexico_City; Chatham Islands=Pacific/Chatham; China=Asia/Shanghai;
Cuba=America/Havana; Dateline=Etc/GMT+12; E. Africa=Africa/Nairobi; E. Australia=Australia/Brisbane;
E. Europe=Europe/Chisinau; E. South America=America/Sao_Paulo; Easter Island=Pacific/Easter;
Eastern=America/New_York; Eastern Standard Time (Mexico)!=America/Cancun; Egypt=Africa/Cairo;
Ekaterinburg=Asia/Yekaterinburg; FLE=Europe/Kiev; Fiji=Pacific/Fiji; GMT=Europe/London; GTB=Europe/Bucharest;
Georgian=Asia/Tbilisi; Greenland=America/Godthab; Greenwich=Atlantic/Reykjavik; Haiti=America/Port-au-Prince;
Hawaiian=Pacific/Honolulu; India=Asia/Calcutta; Iran=Asia/Tehran; Israel=Asia/Jerusalem; Jordan=Asia/Amman;
Kaliningrad=Europe/Kaliningrad; Korea=Asia/Seoul; Libya=Africa/Tripoli; Line Islands=Pacific/Kiritimati;
Lord Howe=Australia/Lord_Howe; Magadan=Asia/Magadan; Magallanes=America/Punta_Arenas;
Manitoba=America/Winnipeg; Marquesas=Pacific/Marquesas; Mauritius=Indian/Mauritius; Middle East=Asia/Beirut;
Montevideo=America/Montevideo; Morocco=Africa/Casablanca; Mountain=America/Denver;
Mountain Standard Time (Mexico)!=America/Mazatlan; Myanmar=Asia/Rangoon; N. Central Asia=Asia/Novosibirsk;
Namibia=Africa/Windhoek; Nepal=Asia/Katmandu; New Zealand=Pacific/Auckland; Newfoundland=America/St_Johns;
Norfolk=Pacific/Norfolk; North Asia East=Asia/Irkutsk; North Asia=Asia/Krasnoyarsk; North Korea=Asia/Pyongyang;
Omsk=Asia/Omsk; Pacific SA=America/Santiago; Pacific=America/Los_Angeles;
Pacific Standard Time (Mexico)!=America/Tijuana; Pakistan=Asia/Karachi; Paraguay=America/Asuncion;
Qyzylorda=Asia/Qyzylorda; Romance=Europe/Paris; Russia Time Zone 10!=Asia/Srednekolymsk;
Russia Time Zone 11!=Asia/Kamchatka; Russia Time Zone 3!=Europe/Samara; Russian=Europe/Moscow;
SA Eastern=America/Cayenne; SA Pacific=America/Bogota; SA Western=America/La_Paz; SE Asia=Asia/Bangkok;
Saint Pierre=America/Miquelon; Sakhalin=Asia/Sakhalin; Samoa=Pacific/Apia; Sao Tome=Africa/Sao_Tome;
Saratov=Europe/Saratov; Singapore=Asia/Singapore; South Africa=Africa/Johannesburg; South Sudan=Africa/Juba;
Sri Lanka=Asia/Colombo; Sudan=Africa/Khartoum; Syria=Asia/Damascus; Taipei=Asia/Taipei;
Tasmania=Australia/Hobart; Tocantins=America/Araguaina; Tokyo=Asia/Tokyo; Tomsk=Asia/Tomsk;
Tonga=Pacific/Tongatapu; Transbaikal=Asia/Chita; Turkey=Europe/Istanbul; Turks And Caicos=America/Grand_Turk;
US Eastern=America/Indianapolis; US Mountain=America/Phoenix; UTC!=Etc/UTC; UTC+12!=Etc/GMT-12;
UTC+13!=Etc/GMT-13; UTC-02!=Etc/GMT+2; UTC-08!=Etc/GMT+8; UTC-09!=Etc/GMT+9; UTC-11!=Etc/GMT+11;
Ulaanbaatar=Asia/Ulaanbaatar; Venezuela=America/Caracas; Vladivostok=Asia/Vladivostok;
Volgograd=Europe/Volgograd; W. Australia=Australia/Perth; W. Central Africa=Africa/Lagos;
W. Europe=Europe/Berlin; W. Mongolia=Asia/Hovd; West Asia=Asia/Tashkent; West Bank=Asia/Hebron;
West Pacific=Pacific/Port_Moresby; Yakutsk=Asia/Yakutsk; Yukon=America/Whitehorse
"""
_LAST_WORDS: Final = " standard time"


def _read_table() -> dict[str, str]:
    zones: dict[str, str] = {}
    for row in _TABLE.replace("\n", " ").split(";"):
        name, _, zone = row.strip().partition("=")
        zones[name[:-1].lower() if name.endswith("!") else name.lower() + _LAST_WORDS] = zone
    return zones


# By Windows' name, in small letters.
WINDOWS_ZONES: Final = _read_table()


def find_zone(name: str) -> str:
    """Return the zone of the IANA database; "" if none is meant.

    name: a zone's name, Windows' name of it, or a path that ends with one, as Evolution's
    `/freeassociation.sourceforge.net/Europe/Berlin` and Exchange's `tzone://Microsoft/Utc`.
    """
    name = name.strip().strip('"')
    if is_time_zone(name):
        return name
    if zone := WINDOWS_ZONES.get(name.lower()):
        return zone
    parts = name.split("/")
    for count in (3, 2, 1):
        if len(parts) > count and is_time_zone(end := "/".join(parts[-count:])):
            return end
    return "UTC" if parts[-1].upper() in ("UTC", "Z") else ""
